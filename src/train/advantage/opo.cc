// OPO: rewards against a baseline that weighs members by their length.
//
//   b = sum_i n_i R_i / sum_i n_i        A_i = R_i - b
//
// n_i the policy tokens of member i: the baseline of least variance when the
// gradient of a response grows with its length. A group of one has b = 0, as in
// verl. Source: arXiv 2505.23585.
#include "train/advantage/advantages.h"

namespace pace {

AdvantageEstimator OpoAdvantage() {
  const auto compute = [](const RewardBatch& batch) -> Result<Advantages> {
    std::vector<double> scores(batch.rewards.begin(), batch.rewards.end());
    for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
      if (members.size() == 1) continue;
      const GroupStatistics group = StatisticsOf(members, batch.rewards);
      double weighted = 0;
      double length = 0;
      for (const size_t member : members) {
        const auto own = static_cast<double>(batch.layout.num_policy_tokens(member));
        weighted += own * batch.rewards[member];
        length += own;
      }
      // Without a policy token in the group no advantage is ever used.
      const double baseline = group.equal || length == 0 ? group.mean : weighted / length;
      for (const size_t member : members) scores[member] -= baseline;
    }
    return Broadcast(batch.layout, scores);
  };
  return AdvantageEstimator(compute, {.equal_rewards_give_zero = true});
}

}  // namespace pace
