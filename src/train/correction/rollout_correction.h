// Corrections for data that another policy sampled: weights, and rejection.
//
// d = log pi_train - log pi_rollout, the train policy recomputed (or the one
// being trained, where the rollout's record is the ratio's reference).
//
// Importance weights, without gradient, multiply a token's loss:
//   TIS      w = min(e^d, upper)                 truncated importance sampling
//   IcePop   w = e^d inside [lower, upper], else 0
// per token, or per sequence with d summed over it. |d| (or its sum) is bounded
// by 20 first. `normalize` divides by the mean weight.
//
// Rejection takes tokens or sequences out of the mask; several criteria must
// all be met. With k1 = -d, k2 = d^2 / 2, k3 = e^d - 1 - d (|d| <= 20):
//   token_*                                 the token's own
//   seq_sum_*, seq_mean_*, seq_max_*        over the sequence
//   k1 must lie in [ln lower, ln upper]: bounds on pi_rollout / pi_train.
//   k2, k3 must be at most upper.
//
// Source: verl (rollout_corr_helper); TIS fengyao.notion.site/off-policy-rl,
// cap 2; IcePop ringtech.notion.site/icepop, 0.5 and 5. verl documents the
// bounds of k1 for pi_train / pi_rollout, the inverse of what its code does;
// `k1_bounds: train_over_rollout` does what is documented.
//
//   Result<CorrectionOptions> tis = MakeCorrection("tis", {{"upper", "2"}, {"reject_token_k3",
//   "1"}}); Result<Correction> correction = CorrectRollout(layout, proximal, rollout, *tis); mask =
//   correction->mask;  batch.importance_weights = correction->weights;
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_CORRECTION_ROLLOUT_CORRECTION_H_
#define PACE_TRAIN_CORRECTION_ROLLOUT_CORRECTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "train/metric.h"
#include "train/option_reader.h"
#include "train/token_batch.h"

namespace pace {

struct ImportanceOptions {
  RatioLevel level = RatioLevel::kToken;
  double upper = 2;
  // None: TIS. Some: IcePop.
  std::optional<double> lower = std::nullopt;
  // Divide by the mean over tokens (or over sequences) of the whole batch.
  bool normalize = false;

  [[nodiscard]] Status Validate() const;
};

struct RejectionCriterion {
  enum class Level { kToken, kSequenceSum, kSequenceMean, kSequenceMax };
  enum class Measure { kK1, kK2, kK3 };

  Level level = Level::kToken;
  Measure measure = Measure::kK1;
  double upper = 2;
  // k1 alone; none: 1 / upper.
  std::optional<double> lower = std::nullopt;

  [[nodiscard]] Status Validate() const;
};

// "token_k1", "seq_max_k3"; nothing for another text (there is no seq_max_k1).
std::optional<RejectionCriterion> RejectionCriterionFromName(std::string_view name);
std::string NameOf(const RejectionCriterion& criterion);

struct CorrectionOptions {
  enum class K1Bounds { kRolloutOverTrain, kTrainOverRollout };

  std::optional<ImportanceOptions> importance = std::nullopt;
  std::vector<RejectionCriterion> rejection = {};
  K1Bounds k1_bounds = K1Bounds::kRolloutOverTrain;
  // Fail where verl fails: without a policy token, and where every weight is 0.
  bool compat = false;

  // Whether there is anything to correct; if not, the train policy's log-probs
  // need not be computed for it.
  bool active() const { return importance.has_value() || !rejection.empty(); }
  [[nodiscard]] Status Validate() const;
};

// By name: `none`, `tis`, `icepop`, weighing as above. Settings: level (token,
// sequence), upper, lower (icepop), normalize; with each name reject_CRITERION
// and, for k1, reject_CRITERION_lower; k1_bounds (rollout_over_train,
// train_over_rollout); compat. What is unknown is an error that says so.
Result<CorrectionOptions> MakeCorrection(std::string_view name, const NamedSettings& settings = {});

struct Correction {
  // One per token, 0 where masked; empty without ImportanceOptions.
  std::vector<double> weights = {};
  // The mask, less what was rejected.
  std::vector<uint8_t> mask = {};
  // Means over policy tokens, except where the name says seq: train/ess (the
  // weights' effective sample size over their number), train/is_{mean,
  // fraction_high, fraction_low, out_of_band}, train/mismatch_{kl, k3, chi2};
  // per criterion and over all train/rejected[_NAME][_seq].
  MetricList metrics = {};
};

Result<Correction> CorrectRollout(const SequenceLayout& layout,
                                  std::span<const double> train_logprobs,
                                  std::span<const double> rollout_logprobs,
                                  const CorrectionOptions& options);

}  // namespace pace

#endif  // PACE_TRAIN_CORRECTION_ROLLOUT_CORRECTION_H_
