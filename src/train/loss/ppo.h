// PPO's clipped surrogate, and DAPO's: the same with two clip widths.
//
//   r   = pi_theta / pi_reference, its logarithm bounded by max_log_ratio
//   L_t = max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high))
//   where A < 0:  L_t = min(L_t, -A dual_clip)
//
// Sources: PPO (arXiv 1707.06347), one width; DAPO (2503.14476), a wider upper
// one and token-mean; dual clip (1912.09729). The bound on log r is verl's;
// no paper has it. verl's defaults are 0.2, 0.2 and a dual clip of 3; this
// method's paper trains with 0.2, 0.28 and 10.
#ifndef PACE_TRAIN_LOSS_PPO_H_
#define PACE_TRAIN_LOSS_PPO_H_

#include <optional>

#include "train/loss/losses.h"

namespace pace {

struct PpoOptions {
  // The ratio is clipped below 1 - clip_low: how far a bad token is pushed
  // down before its gradient stops.
  double clip_low = 0.2;
  // And above 1 + clip_high, for good tokens. DAPO: 0.28.
  double clip_high = 0.2;
  // Bound of the loss of a bad token whose probability grew, as a ratio > 1;
  // none: no bound.
  std::optional<double> dual_clip = std::nullopt;
  // |log r| beyond this is cut, gradient included.
  double max_log_ratio = 20;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

// The defaults of DAPO.
PpoOptions DapoOptions();

class PpoLoss final : public PolicyLoss {
 public:
  using Options = PpoOptions;
  // REQUIRES: options.Validate().ok()
  explicit PpoLoss(const PpoOptions& options) : options_(options) {}

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const PpoOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_PPO_H_
