// Settings of the synthetic workload, of its change in mid-run, and of comparisons.
#ifndef PACE_CONFIG_WORKLOAD_OPTIONS_H_
#define PACE_CONFIG_WORKLOAD_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

enum class LengthLaw { kLognormal, kExponential, kFixed, kFile };

// Prompts differ in difficulty, a standard normal number. A response's length
// is the quantile of `length` at a normal number that prompt and member share:
// prompt_share of its variance belongs to the prompt, and that part correlates
// with difficulty. Everything is a function of (seed, prompt, member), so each
// method meets the same workload.
struct WorkloadOptions {
  int64_t prompt_tokens = 200;

  LengthLaw length = LengthLaw::kLognormal;
  double mean_tokens = 2000;
  double sigma = 0.6;
  std::string lengths_file;
  int64_t min_tokens = 1;
  int64_t max_tokens = 8192;
  double prompt_share = 0.5;
  double difficulty_correlation = 0.8;

  // P(correct) = logistic(logit(pass_rate) - pass_slope * difficulty); a
  // response cut off at max_tokens is wrong.
  double pass_rate = 0.5;
  double pass_slope = 1.5;

  // Expected |log-ratio| of a token sampled d versions ago:
  // drift_floor + drift * d^drift_power, times a lognormal factor per prompt
  // and one per member.
  double drift = 0.02;
  double drift_power = 0.5;
  double drift_floor = 0.005;
  double drift_prompt_sigma = 0.5;
  double drift_member_sigma = 0.1;

  // Turns: 1 + Binomial(max_turns - 1), with this mean. Each but the last ends
  // in a tool call whose latency is lognormal.
  int64_t max_turns = 1;
  double mean_turns = 1;
  double tool_latency_s = 1;
  double tool_latency_sigma = 0.5;
  int64_t tool_tokens = 60;
  int64_t tool_concurrency = 0;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

// A jump of the simulated world in mid-run: what a controller must follow without being told.
struct ChangeOptions {
  int64_t step = 0;  // from this step on; 0 = never
  double length = 1;
  double trainer_speed = 1;
  int64_t lost_engines = 0;

  [[nodiscard]] std::vector<Field> Fields();
};

struct CompareOptions {
  std::vector<std::string> methods;
  std::vector<std::string> overrides;
  std::vector<std::string> reference;

  [[nodiscard]] std::vector<Field> Fields();
};

}  // namespace pace

#endif  // PACE_CONFIG_WORKLOAD_OPTIONS_H_
