// M2PO: the ratio as it is, on the tokens inside a second-moment trust region.
//
//   paper      L_t = -M_t r_t A_t                 M_t = 0 on dropped tokens
//   official   L_t = max(-A r, -A clip(r, e^-tau, e^tau))
//
// The region is chosen without gradient (m2po_region.h). No clip otherwise, no
// dual clip, no bound on log r: a bad token whose probability grew keeps its
// full gradient under both rules. The divisor counts dropped tokens too.
//
// Source: arXiv 2510.01161 with GRPO advantages, token-mean, budget 0.04. The
// published code chooses the region within each micro-batch.
#ifndef PACE_TRAIN_LOSS_M2PO_H_
#define PACE_TRAIN_LOSS_M2PO_H_

#include <optional>

#include "train/loss/losses.h"
#include "train/loss/m2po_region.h"

namespace pace {

struct M2poOptions {
  enum class Rule { kPaper, kOfficial };

  Rule rule = Rule::kPaper;
  // Bound of the mean squared log-ratio of trust-region tokens.
  double budget = 0.04;
  // kMinibatch, or kMicroBatch as the published code.
  LossScope scope = LossScope::kMinibatch;
  // official: widths that the clip does not fall below; none in the published
  // scripts.
  std::optional<double> min_clip_low = std::nullopt;
  std::optional<double> min_clip_high = std::nullopt;
  // official: fail where the published code fails (OfficialRegion).
  bool compat = false;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class M2poLoss final : public PolicyLoss {
 public:
  using Options = M2poOptions;
  // REQUIRES: options.Validate().ok()
  explicit M2poLoss(const M2poOptions& options) : options_(options) {}

  LossScope scope() const override { return options_.scope; }
  // The trust region that Evaluate uses, bounds widened by min_clip_*.
  Result<M2poRegion> Region(const TokenBatch& batch) const;

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  const M2poOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_M2PO_H_
