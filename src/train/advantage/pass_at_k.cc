// Pass@k: only the best member of a group learns, from its lead.
//
//   best:   A = (largest - second largest) / (deviation + epsilon)
//   others: A = 0
//
// The first of several best members counts as the best; its lead is 0.
// A group needs two members. Source: arXiv 2503.19595.
#include <algorithm>

#include "train/advantage/advantages.h"
#include "train/math/sort_order.h"

namespace pace {

AdvantageEstimator PassAtKAdvantage(const GrpoOptions& options) {
  const auto compute = [options](const RewardBatch& batch) -> Result<Advantages> {
    std::vector<double> scores(batch.rewards.size(), 0.0);
    for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
      if (members.size() < 2) {
        return InvalidArgument("groups: pass_at_k needs at least two members in each");
      }
      std::vector<size_t> order = members;
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return LargerFirst({batch.rewards[a], a}, {batch.rewards[b], b});
      });
      double lead = batch.rewards[order[0]] - batch.rewards[order[1]];
      if (lead > 0 && options.standardize) {
        lead /= StatisticsOf(members, batch.rewards).deviation + options.epsilon;
      }
      scores[order[0]] = lead;
    }
    return Broadcast(batch.layout, scores);
  };
  return AdvantageEstimator(compute, {.equal_rewards_give_zero = true});
}

}  // namespace pace
