#include "train/advantage/pass_at_k.h"

#include <algorithm>

#include "train/advantage/group_scores.h"
#include "train/sort_order.h"

namespace pace {

Result<Advantages> PassAtKAdvantage::Compute(const RewardBatch& batch) const {
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
    if (lead > 0 && options_.standardize) {
      lead /= StatisticsOf(members, batch.rewards).deviation + options_.epsilon;
    }
    scores[order[0]] = lead;
  }
  return Broadcast(batch.layout, scores);
}

}  // namespace pace
