// GAE: advantages from a value head.
//
//   delta_t = r_t + gamma V_{t+1} - V_t
//   A_t     = delta_t + gamma lambda A_{t+1}        returns: A_t + V_t
//
// over policy tokens only: t + 1 is the next policy token, so that tool output
// is passed over. Advantages are then standardised over the batch's policy
// tokens, returns are not. Beyond the last token V and A are 0.
//
// Source: arXiv 1506.02438. `length_factor` a > 0 sets lambda per sequence to
// 1 - 1 / (a n), n its policy tokens; `returns_lambda` is that of the returns
// alone. SAO (2607.07508) has 1.5 and 1: its critic learns from whole returns.
#ifndef PACE_TRAIN_ADVANTAGE_GAE_H_
#define PACE_TRAIN_ADVANTAGE_GAE_H_

#include <optional>

#include "train/advantage/advantages.h"

namespace pace {

struct GaeOptions {
  double gamma = 1;
  double lambda = 1;
  // 0: lambda as given. Otherwise lambda grows with the length.
  double length_factor = 0;
  // None: that of the advantages.
  std::optional<double> returns_lambda = std::nullopt;
  // Whether advantages are standardised over the batch.
  bool standardize = true;
  // Fail as verl does where there is nothing to standardise.
  bool compat = false;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class GaeAdvantage final : public AdvantageEstimator {
 public:
  using Options = GaeOptions;
  // REQUIRES: options.Validate().ok()
  explicit GaeAdvantage(const GaeOptions& options) : options_(options) {}
  AdvantageInputs inputs() const override { return {.values = true}; }

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;

 private:
  double Lambda(int64_t num_policy_tokens) const;

  const GaeOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_GAE_H_
