// REINFORCE++: discounted returns, standardised over the whole batch.
//
//   reinforce_plus_plus            G_t = r_t + gamma G_{t+1} over policy tokens
//                                  A_t = standardised G_t
//   reinforce_plus_plus_baseline   A   = standardised (R - mean of its group)
//
// Standardised over all policy tokens of the batch. Rewards are per token (an
// outcome on the last one, a KL penalty on each). Returns cross tool output; in
// verl before #7300 the running return was lost there, so that an outcome never
// reached the turns before the last (`cross_masked: false`).
// With fewer than two policy tokens verl fails; here advantages are 0, or with
// `compat` an error.
//
// Source: arXiv 2501.03262. The variant with a baseline fixes gamma to 1, and a
// group of one has the mean 0, as in verl.
#include "train/advantage/advantages.h"

namespace pace {
namespace {

Status CheckCount(const SequenceLayout& layout, bool compat) {
  if (!compat || layout.num_policy_tokens() >= 2) return Status::Ok();
  return InvalidArgument("mask: verl standardises over at least two policy tokens");
}

}  // namespace

AdvantageEstimator ReinforcePlusPlusAdvantage(const ReinforcePlusPlusOptions& options) {
  const auto compute = [options](const RewardBatch& batch) -> Result<Advantages> {
    const SequenceLayout& layout = batch.layout;
    PACE_RETURN_IF_ERROR(CheckCount(layout, options.compat));
    const std::vector<double> rewards = TokenRewards(batch);
    Advantages out;
    out.returns.assign(layout.num_tokens(), 0.0);
    for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
      double running = 0;
      for (size_t token = layout.end(sequence); token-- > layout.begin(sequence);) {
        if (layout.mask[token] != 0) {
          running = rewards[token] + options.gamma * running;
          out.returns[token] = running;
        } else if (!options.cross_masked) {
          running = 0;
        }
      }
    }
    out.advantages = out.returns;
    Whiten(layout, out.advantages);
    return out;
  };
  return AdvantageEstimator(compute);
}

AdvantageEstimator ReinforceBaselineAdvantage(const ReinforceBaselineOptions& options) {
  const auto compute = [options](const RewardBatch& batch) -> Result<Advantages> {
    PACE_RETURN_IF_ERROR(CheckCount(batch.layout, options.compat));
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
  };
  return AdvantageEstimator(compute);
}

}  // namespace pace
