// KL-Cov: the plain ratio, with a penalty on the tokens of highest covariance.
//
//   L_t = -A r                                       on all policy tokens
//       + kl_coefficient |log pi_theta - log pi_reference|
//                                                    on the top `fraction`
//
// At least one token carries the penalty. Source: arXiv 2505.22617.
#ifndef PACE_TRAIN_LOSS_KL_COV_H_
#define PACE_TRAIN_LOSS_KL_COV_H_

#include <cstdint>
#include <vector>

#include "train/loss/losses.h"

namespace pace {

struct KlCovOptions {
  // Share of the policy tokens that carry the penalty.
  double fraction = 2e-4;
  double kl_coefficient = 1;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class KlCovLoss final : public PolicyLoss {
 public:
  using Options = KlCovOptions;
  // REQUIRES: options.Validate().ok()
  explicit KlCovLoss(const KlCovOptions& options) : options_(options) {}

  LossScope scope() const override { return LossScope::kMinibatch; }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const KlCovOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_KL_COV_H_
