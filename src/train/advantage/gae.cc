#include "train/advantage/gae.h"

#include <algorithm>

#include "train/advantage/group_scores.h"

namespace pace {

void GaeOptions::Read(OptionReader& reader) {
  reader.Real("gamma", gamma);
  reader.Real("lambda", lambda);
  reader.Real("length_factor", length_factor);
  reader.OptionalReal("returns_lambda", returns_lambda);
  reader.Bool("standardize", standardize);
  reader.Bool("compat", compat);
}

Status GaeOptions::Validate() const {
  if (!(gamma >= 0 && gamma <= 1)) {
    return InvalidArgument("gae.gamma = ", gamma, ": must be in [0, 1]");
  }
  if (!(lambda >= 0 && lambda <= 1)) {
    return InvalidArgument("gae.lambda = ", lambda, ": must be in [0, 1]");
  }
  if (returns_lambda.has_value() && !(*returns_lambda >= 0 && *returns_lambda <= 1)) {
    return InvalidArgument("gae.returns_lambda = ", *returns_lambda, ": must be in [0, 1]");
  }
  if (length_factor >= 0) return Status::Ok();
  return InvalidArgument("gae.length_factor = ", length_factor,
                         ": must be >= 0 (0 takes lambda as given)");
}

double GaeAdvantage::Lambda(int64_t num_policy_tokens) const {
  if (options_.length_factor == 0 || num_policy_tokens == 0) return options_.lambda;
  const double scaled = options_.length_factor * static_cast<double>(num_policy_tokens);
  return std::max(0.0, 1 - 1 / scaled);
}

Result<Advantages> GaeAdvantage::Compute(const RewardBatch& batch) const {
  const SequenceLayout& layout = batch.layout;
  if (options_.compat && options_.standardize && layout.num_policy_tokens() < 2) {
    return InvalidArgument("mask: verl standardises over at least two policy tokens");
  }
  const std::vector<double> rewards = TokenRewards(batch);
  Advantages out;
  out.advantages.assign(layout.num_tokens(), 0.0);
  out.returns.assign(layout.num_tokens(), 0.0);
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    const double lambda = Lambda(layout.num_policy_tokens(sequence));
    const double returns_lambda = options_.returns_lambda.value_or(lambda);
    double next_value = 0;
    double running = 0;
    double running_return = 0;  // less the value
    for (size_t token = layout.end(sequence); token-- > layout.begin(sequence);) {
      if (layout.mask[token] == 0) continue;
      const double delta = rewards[token] + options_.gamma * next_value - batch.values[token];
      running = delta + options_.gamma * lambda * running;
      running_return = delta + options_.gamma * returns_lambda * running_return;
      next_value = batch.values[token];
      out.advantages[token] = running;
      out.returns[token] = running_return + batch.values[token];
    }
  }
  if (options_.standardize) Whiten(layout, out.advantages);
  return out;
}

}  // namespace pace
