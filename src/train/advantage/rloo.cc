#include "train/advantage/rloo.h"

#include "train/advantage/group_scores.h"

namespace pace {

void RlooOptions::Read(OptionReader& reader) {
  reader.Choice("single", {{"reward", Single::kReward}, {"zero", Single::kZero}}, single);
}

Result<Advantages> RlooAdvantage::Compute(const RewardBatch& batch) const {
  std::vector<double> scores(batch.rewards.size());
  for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
    if (members.size() == 1) {
      const bool keeps = options_.single == RlooOptions::Single::kReward;
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
}

}  // namespace pace
