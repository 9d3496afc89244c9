// Workload: the properties of prompts and their responses, as pure functions.
//
// Everything follows from (seed, prompt, member). So every method meets the same prompts and
// responses in any order, and a prompt dispatched again has the same responses.
//
// Thread-safety: immutable after Create.
#ifndef PACE_SIM_WORKLOAD_H_
#define PACE_SIM_WORKLOAD_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/run_options.h"
#include "config/workload_options.h"
#include "core/clock.h"
#include "core/ids.h"
#include "core/random.h"
#include "core/staleness.h"
#include "core/status.h"

namespace pace {

struct PromptTraits {
  double difficulty = 0;    // standard normal
  double length_shift = 0;  // the prompt's part of a length's normal variate
  double pass_rate = 0;
  double drift_factor = 1;
};

struct ResponseTraits {
  int64_t num_tokens = 1;  // policy tokens
  int64_t num_turns = 1;
  bool truncated = false;  // cut off by the budget
};

class Workload {
 public:
  // Reads the file of lengths where the options name one.
  static Result<Workload> Create(const WorkloadOptions& options, uint64_t seed);

  PromptTraits Prompt(PromptIndex prompt) const;
  // `length` multiplies the number of tokens, within the budget.
  ResponseTraits Response(PromptIndex prompt, int64_t member, const PromptTraits& traits,
                          double length = 1) const;
  bool Correct(PromptIndex prompt, int64_t member, const PromptTraits& traits,
               const ResponseTraits& response) const;
  // Of the call that ends a turn, turns counting from 0.
  Seconds ToolLatency(PromptIndex prompt, int64_t member, int64_t turn) const;

  // The prefix score of a finished response. It follows from the versions: a run of one
  // version ends where a sync interrupted the response, and the last interruption after at
  // least min_tokens counts. None where there is no such interruption.
  std::optional<double> PrefixScore(PromptIndex prompt, int64_t member, double drift_factor,
                                    std::span<const Segment> segments,
                                    const PrefixOptions& prefix) const;

  const WorkloadOptions& options() const { return options_; }

 private:
  Workload(const WorkloadOptions& options, uint64_t seed);
  double Length(double normal) const;
  // The expected |log-ratio| of a token sampled `lag` versions ago, before the factors.
  double DriftAt(int64_t lag) const;

  WorkloadOptions options_;
  std::vector<int64_t> lengths_;  // sorted, of the file
  // Derived once.
  double log_mean_ = 0;
  double prompt_weight_ = 0, member_weight_ = 0;
  double logit_pass_ = 0;
  std::vector<double> drift_at_;  // by lag, the first ones
  CounterRandom difficulty_, prompt_length_, length_, pass_, turns_, prompt_drift_, member_drift_;
  uint64_t seed_ = 0;
};

// Lengths from a file: an integer or {"length": n} per line, blank lines allowed. An error
// begins with `name` and the line.
Result<std::vector<int64_t>> ParseLengths(std::string_view text, const std::string& name);

}  // namespace pace

#endif  // PACE_SIM_WORKLOAD_H_
