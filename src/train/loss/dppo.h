// DPPO: a trust region on probabilities, not on ratios.
//
//   L_t = -sg(min(r, max_ratio)) A log pi_theta   inside the region, else 0
//
// With p = pi_theta and q = pi_reference of the token (all others taken as one
// other outcome), a token leaves the region when its update would take it
// further away:
//
//   tv   A > 0: p - q > divergence_high        otherwise: q - p > divergence_low
//   kl   KL(q || p) of the two outcomes above divergence_high (A > 0 and
//        p > q) or divergence_low (otherwise, p < q)
//
// A rare token may double its probability; a common one may not, although
// their ratios are equal. Source: arXiv 2602.04879; verl's constants.
#ifndef PACE_TRAIN_LOSS_DPPO_H_
#define PACE_TRAIN_LOSS_DPPO_H_

#include "train/loss/losses.h"

namespace pace {

struct DppoOptions {
  enum class Divergence { kTotalVariation, kKl };

  Divergence divergence = Divergence::kTotalVariation;
  double divergence_low = 0.2;
  double divergence_high = 0.2;
  // Cap of the weight; large, because cutting it biases the gradient.
  double max_ratio = 20;
  double max_log_ratio = 20;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class DppoLoss final : public PolicyLoss {
 public:
  using Options = DppoOptions;
  // REQUIRES: options.Validate().ok()
  explicit DppoLoss(const DppoOptions& options) : options_(options) {}

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  // Whether the token may still be updated.
  bool Inside(double logprob, double reference, double advantage) const;

  const DppoOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_DPPO_H_
