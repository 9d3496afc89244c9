// OPOB: the off-policy baseline of least variance, from gradient norms.
//
//   W_i = w_i^2 |g_i|^2 (/ n_i^2)        b = sum_i W_i R_i / sum_i W_i
//
// g_i the gradient of log pi of trajectory i (length normalisation undone), w_i
// its importance weight, n_i its policy tokens. The trainer keeps two sums per
// group, of R_i w_i g_i and of w_i g_i, and subtracts b times the second; the
// coefficients returned here are those of w_i g_i in the result:
//
//   c_i = (R_i - b) / deviation          deviation of the group's rewards
//
// (population; 1 without `standardize`, or where it is not above 1e-8). Under
// scope minibatch advantages take the place of rewards and one b serves all.
//
// Source: VCPO (arXiv 2602.17616, mit-han-lab/vcpo), 1e-8 in the divisor.
// Their trainer measures |g_i| on a gradient that already holds w_i, so that
// use_weights counts it twice against the paper's formula: pass norms without.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_TRAIN_CORRECTION_OPOB_H_
#define PACE_TRAIN_CORRECTION_OPOB_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "train/option_reader.h"

namespace pace {

struct OpobOptions {
  enum class Scope { kGroup, kMinibatch };
  // kWinsorizedMean cuts rewards at their weighted 5 % and 95 % quantiles.
  enum class Aggregation { kMean, kMedian, kWinsorizedMean };

  Scope scope = Scope::kGroup;
  Aggregation aggregation = Aggregation::kMean;
  // Whether w_i^2 enters W_i.
  bool use_weights = true;
  // Bound of w_i; none: no bound.
  std::optional<double> max_weight = std::nullopt;
  // Whether W_i is divided by n_i^2.
  bool normalize_by_length = false;
  // Whether coefficients are divided by the deviation of the group's rewards.
  bool standardize = false;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

// One entry per trajectory each.
struct OpobBatch {
  std::span<const int64_t> groups = {};
  std::span<const double> rewards = {};     // scope group
  std::span<const double> advantages = {};  // scope minibatch
  std::span<const double> gradient_norms = {};
  std::span<const double> weights = {};  // w_i
  std::span<const int64_t> lengths = {};
};

struct OpobResult {
  std::vector<double> baselines = {};     // b of each trajectory's group
  std::vector<double> coefficients = {};  // c_i
};

Result<OpobResult> OffPolicyBaseline(const OpobBatch& batch, const OpobOptions& options);

}  // namespace pace

#endif  // PACE_TRAIN_CORRECTION_OPOB_H_
