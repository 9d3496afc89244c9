// Batches and results of policy losses, as the cases of data/numerics hold them.
#ifndef PACE_CONFORMANCE_NUMERICS_BATCH_H_
#define PACE_CONFORMANCE_NUMERICS_BATCH_H_

#include <string>
#include <string_view>
#include <vector>

#include "conformance/numerics_case.h"
#include "train/correction/corrections.h"
#include "train/loss/losses.h"

namespace pace {

// The arrays of a case and the TokenBatch that borrows them; not to be copied.
struct PaddedBatch {
  PaddedLayout padded;
  std::vector<double> logprobs;
  std::vector<double> rollout_logprobs;   // inputs.old_log_prob
  std::vector<double> proximal_logprobs;  // may be empty
  std::vector<double> advantages;
  std::vector<double> importance_weights;  // may be empty
  std::vector<double> rewards;             // inputs.scores, may be empty
  TokenBatch tokens;

  PaddedBatch() = default;
  PaddedBatch(PaddedBatch&&) = default;
  PaddedBatch& operator=(PaddedBatch&&) = delete;

  // Points `tokens` at the arrays again, after one was exchanged.
  void Bind();
};
// entry.failed() where arrays are missing or of different sizes.
PaddedBatch ReadBatch(NumericsCase& entry);

// PPO's settings under verl's names, for NumericsCase::Settings.
inline constexpr const char* kPpoSettings =
    "clip_low=clip_ratio_low clip_high=clip_ratio_high dual_clip=clip_ratio_c";

// The loss of that name, reduced by `mode` over `totals` (config.global_batch_info
// takes precedence). A case with a quirk uses the peer's rule for padding.
Result<LossResult> EvaluateCase(const NumericsCase& entry, const PaddedBatch& batch,
                                std::string_view loss, const NamedSettings& settings,
                                std::string_view mode, const MinibatchTotals& totals,
                                PaddingRule padding);

// Loss and gradient, the latter at every position, with those of `expected`.
void CompareResult(NumericsCase& entry, const LossResult& result, const Value& expected);
void CompareResult(NumericsCase& entry, const LossResult& result);

// verl's correction settings and metrics.
Result<CorrectionOptions> ReadCorrectionOptions(const Value& config, bool compat);
void CompareCorrectionMetrics(NumericsCase& entry, const MetricList& metrics,
                              const CorrectionOptions& options, const Value& theirs);

}  // namespace pace

#endif  // PACE_CONFORMANCE_NUMERICS_BATCH_H_
