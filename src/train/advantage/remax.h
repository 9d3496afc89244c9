// ReMax: returns against the reward of a greedy response to the same prompt.
//
//   A_t = sum_{s >= t} r_s - b        over policy tokens
//
// Source: arXiv 2310.10505. b comes with the batch, one per sequence.
#ifndef PACE_TRAIN_ADVANTAGE_REMAX_H_
#define PACE_TRAIN_ADVANTAGE_REMAX_H_

#include "train/advantage/advantages.h"

namespace pace {

struct RemaxOptions {
  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const { return Status::Ok(); }
};

class RemaxAdvantage final : public AdvantageEstimator {
 public:
  using Options = RemaxOptions;
  explicit RemaxAdvantage(const RemaxOptions& /*options*/) {}
  AdvantageInputs inputs() const override { return {.baselines = true}; }

 protected:
  Result<Advantages> Compute(const RewardBatch& batch) const override;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADVANTAGE_REMAX_H_
