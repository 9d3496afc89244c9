#include "train/advantage/grpo.h"

#include "train/advantage/group_scores.h"

namespace pace {

void GrpoOptions::Read(OptionReader& reader) {
  reader.Bool("standardize", standardize);
  reader.Real("epsilon", epsilon);
}

Status GrpoOptions::Validate() const {
  if (epsilon >= 0) return Status::Ok();
  return InvalidArgument("grpo.epsilon = ", epsilon, ": must be >= 0");
}

Result<Advantages> GrpoAdvantage::Compute(const RewardBatch& batch) const {
  std::vector<double> scores(batch.rewards.size());
  for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
    GroupStatistics group = StatisticsOf(members, batch.rewards);
    if (members.size() == 1) group = {.mean = 0, .deviation = 1};
    for (const size_t member : members) {
      double score = batch.rewards[member] - group.mean;
      if (group.equal) {
        score = 0;
      } else if (options_.standardize) {
        score /= group.deviation + options_.epsilon;
      }
      scores[member] = score;
    }
  }
  return Broadcast(batch.layout, scores);
}

}  // namespace pace
