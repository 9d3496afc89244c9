#include "train/advantage/reinforce_plus_plus.h"

#include "train/advantage/group_scores.h"

namespace pace {
namespace {

Status CheckCount(const SequenceLayout& layout, bool compat) {
  if (!compat || layout.num_policy_tokens() >= 2) return Status::Ok();
  return InvalidArgument("mask: verl standardises over at least two policy tokens");
}

}  // namespace

void ReinforcePlusPlusOptions::Read(OptionReader& reader) {
  reader.Real("gamma", gamma);
  reader.Bool("cross_masked", cross_masked);
  reader.Bool("compat", compat);
}

Status ReinforcePlusPlusOptions::Validate() const {
  if (gamma >= 0 && gamma <= 1) return Status::Ok();
  return InvalidArgument("reinforce_plus_plus.gamma = ", gamma, ": must be in [0, 1]");
}

Result<Advantages> ReinforcePlusPlusAdvantage::Compute(const RewardBatch& batch) const {
  const SequenceLayout& layout = batch.layout;
  PACE_RETURN_IF_ERROR(CheckCount(layout, options_.compat));
  const std::vector<double> rewards = TokenRewards(batch);
  Advantages out;
  out.returns.assign(layout.num_tokens(), 0.0);
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    double running = 0;
    for (size_t token = layout.end(sequence); token-- > layout.begin(sequence);) {
      if (layout.mask[token] != 0) {
        running = rewards[token] + options_.gamma * running;
        out.returns[token] = running;
      } else if (!options_.cross_masked) {
        running = 0;
      }
    }
  }
  out.advantages = out.returns;
  Whiten(layout, out.advantages);
  return out;
}

void ReinforceBaselineOptions::Read(OptionReader& reader) {
  reader.Bool("compat", compat);
}

Result<Advantages> ReinforceBaselineAdvantage::Compute(const RewardBatch& batch) const {
  PACE_RETURN_IF_ERROR(CheckCount(batch.layout, options_.compat));
  std::vector<double> scores(batch.rewards.begin(), batch.rewards.end());
  for (const std::vector<size_t>& members : GroupMembers(batch.layout)) {
    if (members.size() == 1) continue;
    const GroupStatistics group = StatisticsOf(members, batch.rewards);
    for (const size_t member : members) scores[member] -= group.mean;
  }
  Advantages out = Broadcast(batch.layout, scores);
  Whiten(batch.layout, out.advantages);
  out.returns = out.advantages;
  return out;
}

}  // namespace pace
