// RLOO: each member against the mean of the others.
//
//   A_i = R_i - mean_{j != i} R_j = n / (n - 1) (R_i - mean)
//
// A member without others keeps its reward, or gets 0: verl does the one in its
// loop and the other in its vectorised form. Source: arXiv 2402.14740.
#include "train/advantage/advantages.h"

namespace pace {

AdvantageEstimator RlooAdvantage(const RlooOptions& options) {
  const auto compute = [options](const RewardBatch& batch) -> Result<Advantages> {
    std::vector<double> scores(batch.rewards.size());
    for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
      if (members.size() == 1) {
        const bool keeps = options.single == RlooOptions::Single::kReward;
        scores[members[0]] = keeps ? batch.rewards[members[0]] : 0;
        continue;
      }
      const GroupStatistics group = StatisticsOf(members, batch.rewards);
      const auto count = static_cast<double>(members.size());
      for (const size_t member : members) {
        scores[member] = (batch.rewards[member] - group.mean) * count / (count - 1);
      }
    }
    return Broadcast(batch.layout, scores);
  };
  return AdvantageEstimator(compute, {.equal_rewards_give_zero = true});
}

}  // namespace pace
