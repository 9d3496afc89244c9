#include "train/advantage/remax.h"

#include "train/advantage/group_scores.h"

namespace pace {

void RemaxOptions::Read(OptionReader& /*reader*/) {}

Result<Advantages> RemaxAdvantage::Compute(const RewardBatch& batch) const {
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
}

}  // namespace pace
