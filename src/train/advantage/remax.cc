// ReMax: returns against the reward of a greedy response to the same prompt.
//
//   A_t = sum_{s >= t} r_s - b        over policy tokens
//
// Source: arXiv 2310.10505. b comes with the batch, one per sequence.
#include "train/advantage/advantages.h"

namespace pace {

AdvantageEstimator RemaxAdvantage() {
  const auto compute = [](const RewardBatch& batch) -> Result<Advantages> {
    const SequenceLayout& layout = batch.layout;
    const std::vector<double> rewards = TokenRewards(batch);
    Advantages out;
    out.advantages.assign(layout.num_tokens(), 0.0);
    out.returns.assign(layout.num_tokens(), 0.0);
    for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
      double running = 0;
      for (size_t token = layout.end(sequence); token-- > layout.begin(sequence);) {
        if (layout.mask[token] == 0) continue;
        running += rewards[token];
        out.returns[token] = running;
        out.advantages[token] = running - batch.baselines[sequence];
      }
    }
    return out;
  };
  return AdvantageEstimator(compute, {.inputs = {.baselines = true}});
}

}  // namespace pace
