// Clip-Cov: PPO, with some tokens of high covariance left out at random.
//
// Candidates are the policy tokens with cov_low < cov_t < cov_high that PPO does
// not already clip; max(1, fraction * all policy tokens) of them lose their loss.
// Source: arXiv 2505.22617, its constants. Peers draw from torch's generator;
// we order candidates by random bits of (seed, log-prob), so that the choice
// depends on neither order nor machine.
#ifndef PACE_TRAIN_LOSS_CLIP_COV_H_
#define PACE_TRAIN_LOSS_CLIP_COV_H_

#include <cstdint>
#include <vector>

#include "train/loss/losses.h"

namespace pace {

struct ClipCovOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  // Share of the policy tokens to leave out.
  double fraction = 2e-4;
  double cov_low = 1;
  double cov_high = 5;
  int64_t seed = 0;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

class ClipCovLoss final : public PolicyLoss {
 public:
  using Options = ClipCovOptions;
  // REQUIRES: options.Validate().ok()
  explicit ClipCovLoss(const ClipCovOptions& options) : options_(options) {}

  LossScope scope() const override { return LossScope::kMinibatch; }

 protected:
  Status Compute(const TokenBatch& batch, const ReductionWeights& weights,
                 LossResult& out) const override;

 private:
  // 1 on the tokens left out.
  std::vector<uint8_t> LeftOut(const TokenBatch& batch) const;

  const ClipCovOptions options_;
};

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_CLIP_COV_H_
