#include "train/advantage/gpg.h"

#include <algorithm>

#include "train/advantage/group_scores.h"

namespace pace {

void GpgOptions::Read(OptionReader& reader) {
  reader.Real("normalizer", normalizer);
}

Status GpgOptions::Validate() const {
  if (normalizer > 0) return Status::Ok();
  return InvalidArgument("gpg.normalizer = ", normalizer, ": must be positive");
}

Result<Advantages> GpgAdvantage::Compute(const RewardBatch& batch) const {
  const auto nonzero = std::count_if(batch.rewards.begin(), batch.rewards.end(),
                                     [](double reward) { return reward != 0; });
  const double alpha = static_cast<double>(batch.rewards.size()) /
                       static_cast<double>(std::max<ptrdiff_t>(nonzero, 1));
  std::vector<double> scores(batch.rewards.size());
  for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
    const double mean = members.size() == 1 ? 0 : StatisticsOf(members, batch.rewards).mean;
    for (const size_t member : members) {
      scores[member] = alpha * (batch.rewards[member] - mean) / options_.normalizer;
    }
  }
  return Broadcast(batch.layout, scores);
}

}  // namespace pace
