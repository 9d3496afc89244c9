// Sampling: from one row of logits to a token and its log-probabilities.
//
// Logits are divided by the temperature; top-k, then top-p, then min-p cut the
// tail, each on what the one before left. The draw is a pure function of the
// logits and of a key, so a response is the same whatever else was in the batch.
//
// Two log-probabilities are reported: under the full distribution at this
// temperature, which a trainer computes again, and under the distribution that
// was sampled from. They are equal where nothing is cut. Greedy (temperature 0)
// takes the largest logit, the lowest id among equals, and reports
// log-probabilities at temperature 1 (the sampled one is then 0).
// Thread-safety: pure functions.
#ifndef PACE_MODEL_SAMPLING_H_
#define PACE_MODEL_SAMPLING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"

namespace pace {

struct SamplingOptions {
  // 0 = greedy.
  double temperature = 1.0;
  // Keep the k likeliest tokens (and those as likely as the last). 0 = all.
  int64_t top_k = 0;
  // Keep the fewest likeliest tokens whose probabilities reach this. 1 = all.
  double top_p = 1.0;
  // Keep tokens at least this likely, as a share of the likeliest. 0 = all.
  double min_p = 0.0;

  [[nodiscard]] Status Validate() const;
  bool greedy() const { return temperature == 0; }
  bool truncated() const { return top_k > 0 || top_p < 1 || min_p > 0; }
  // What logits are divided by, for log-probabilities too.
  double scale() const { return greedy() ? 1.0 : temperature; }
  friend bool operator==(const SamplingOptions&, const SamplingOptions&) = default;
};

// Which draw: independent random numbers for every (seed, prompt, response, token).
struct SampleKey {
  uint64_t seed = 0;
  int64_t prompt = 0;    // < 2^40
  int64_t response = 0;  // < 2^24
  int64_t token = 0;     // < 2^32
  friend bool operator==(const SampleKey&, const SampleKey&) = default;
};

struct Sampled {
  TokenId token = 0;
  float logprob = 0;          // under the full distribution
  float sampled_logprob = 0;  // under the one sampled from
};

// The random number of a draw, uniform in [0, 1): a function of the key alone, the same on every
// device.
double UniformOf(const SampleKey& key);

}  // namespace pace

#endif  // PACE_MODEL_SAMPLING_H_
