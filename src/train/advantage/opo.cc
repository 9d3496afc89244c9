#include "train/advantage/opo.h"

#include "train/advantage/group_scores.h"

namespace pace {

void OpoOptions::Read(OptionReader& /*reader*/) {}

Result<Advantages> OpoAdvantage::Compute(const RewardBatch& batch) const {
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
}

}  // namespace pace
