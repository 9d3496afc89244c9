// GPG: centred rewards, scaled up for the sequences that taught nothing.
//
//   A = alpha (R - mean of its group) / normalizer,
//   alpha = sequences / sequences whose reward is not 0
//
// over the whole batch. A group of one has the mean 0, as in verl.
// Source: arXiv 2504.02546, where alpha leaves out the samples without a
// gradient; verl leaves out those with a reward of 0, and so do we.
#include <algorithm>

#include "train/advantage/advantages.h"

namespace pace {

AdvantageEstimator GpgAdvantage(const GpgOptions& options) {
  const auto compute = [options](const RewardBatch& batch) -> Result<Advantages> {
    const auto nonzero = std::count_if(batch.rewards.begin(), batch.rewards.end(),
                                       [](double reward) { return reward != 0; });
    const double alpha = static_cast<double>(batch.rewards.size()) /
                         static_cast<double>(std::max<ptrdiff_t>(nonzero, 1));
    std::vector<double> scores(batch.rewards.size());
    for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
      const double mean = members.size() == 1 ? 0 : StatisticsOf(members, batch.rewards).mean;
      for (const size_t member : members) {
        scores[member] = alpha * (batch.rewards[member] - mean) / options.normalizer;
      }
    }
    return Broadcast(batch.layout, scores);
  };
  return AdvantageEstimator(compute, {.equal_rewards_give_zero = true});
}

}  // namespace pace
