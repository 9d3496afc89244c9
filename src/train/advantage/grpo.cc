// GRPO: rewards standardised within their group; Dr.GRPO: only centred.
//
//   grpo      A = (R - mean) / (deviation + epsilon)
//   dr_grpo   A = R - mean
//
// over the members of a group, deviation unbiased, given to all policy tokens.
// A group of one keeps its reward (mean 0, deviation 1), as in verl. A group of
// equal rewards gets exactly 0: in float32 a rounded mean over epsilon has given
// up to 0.23 where it should give nothing.
//
// Source: DeepSeekMath (arXiv 2402.03300); Dr.GRPO (2503.20783), which pairs it
// with the reduction seq-mean-token-sum-norm.
#include "train/advantage/advantages.h"

namespace pace {

AdvantageEstimator GrpoAdvantage(const GrpoOptions& options) {
  const auto compute = [options](const RewardBatch& batch) -> Result<Advantages> {
    std::vector<double> scores(batch.rewards.size());
    for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
      GroupStatistics group = StatisticsOf(members, batch.rewards);
      if (members.size() == 1) group = {.mean = 0, .deviation = 1};
      for (const size_t member : members) {
        double score = batch.rewards[member] - group.mean;
        if (group.equal) {
          score = 0;
        } else if (options.standardize) {
          score /= group.deviation + options.epsilon;
        }
        scores[member] = score;
      }
    }
    return Broadcast(batch.layout, scores);
  };
  return AdvantageEstimator(compute, {.equal_rewards_give_zero = true});
}

}  // namespace pace
