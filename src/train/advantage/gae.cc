// GAE: advantages from a value head.
//
//   delta_t = r_t + gamma V_{t+1} - V_t
//   A_t     = delta_t + gamma lambda A_{t+1}        returns: A_t + V_t
//
// over policy tokens only: t + 1 is the next policy token, so that tool output
// is passed over. Advantages are then standardised over the batch's policy
// tokens, returns are not. Beyond the last token V and A are 0.
//
// Source: arXiv 1506.02438. `length_factor` a > 0 sets lambda per sequence to
// 1 - 1 / (a n), n its policy tokens; `returns_lambda` is that of the returns
// alone. SAO (2607.07508) has 1.5 and 1: its critic learns from whole returns.
#include <algorithm>

#include "train/advantage/advantages.h"

namespace pace {
namespace {

double Lambda(int64_t num_policy_tokens, const GaeOptions& options) {
  if (options.length_factor == 0 || num_policy_tokens == 0) return options.lambda;
  const double scaled = options.length_factor * static_cast<double>(num_policy_tokens);
  return std::max(0.0, 1 - 1 / scaled);
}

}  // namespace

AdvantageEstimator GaeAdvantage(const GaeOptions& options) {
  const auto compute = [options](const RewardBatch& batch) -> Result<Advantages> {
    const SequenceLayout& layout = batch.layout;
    if (options.compat && options.standardize && layout.num_policy_tokens() < 2) {
      return InvalidArgument("mask: verl standardises over at least two policy tokens");
    }
    const std::vector<double> rewards = TokenRewards(batch);
    Advantages out;
    out.advantages.assign(layout.num_tokens(), 0.0);
    out.returns.assign(layout.num_tokens(), 0.0);
    for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
      const double lambda = Lambda(layout.num_policy_tokens(sequence), options);
      const double returns_lambda = options.returns_lambda.value_or(lambda);
      double next_value = 0;
      double running = 0;
      double running_return = 0;  // less the value
      for (size_t token = layout.end(sequence); token-- > layout.begin(sequence);) {
        if (layout.mask[token] == 0) continue;
        const double delta = rewards[token] + options.gamma * next_value - batch.values[token];
        running = delta + options.gamma * lambda * running;
        running_return = delta + options.gamma * returns_lambda * running_return;
        next_value = batch.values[token];
        out.advantages[token] = running;
        out.returns[token] = running_return + batch.values[token];
      }
    }
    if (options.standardize) Whiten(layout, out.advantages);
    return out;
  };
  return AdvantageEstimator(compute, {.inputs = {.values = true}});
}

}  // namespace pace
