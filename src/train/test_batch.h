// Random batches for the tests of this folder, to be split and shuffled.
#ifndef PACE_TRAIN_TEST_BATCH_H_
#define PACE_TRAIN_TEST_BATCH_H_

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "train/advantage/advantages.h"
#include "train/math/token_batch.h"

namespace pace {

// Owns the arrays of a TokenBatch and a RewardBatch.
struct BatchData {
  std::vector<int64_t> offsets = {0};
  std::vector<int64_t> groups;
  std::vector<uint8_t> mask;
  std::vector<double> logprobs, rollout_logprobs, proximal_logprobs, advantages;
  std::vector<double> token_rewards, values;
  std::vector<double> rewards, baselines;

  SequenceLayout layout() const { return {.offsets = offsets, .groups = groups, .mask = mask}; }
  TokenBatch tokens() const {
    TokenBatch batch;
    batch.layout = layout();
    batch.logprobs = logprobs;
    batch.rollout_logprobs = rollout_logprobs;
    batch.proximal_logprobs = proximal_logprobs;
    batch.advantages = advantages;
    batch.rewards = rewards;
    return batch;
  }
  RewardBatch reward_batch() const {
    RewardBatch batch;
    batch.layout = layout();
    batch.rewards = rewards;
    batch.token_rewards = token_rewards;
    batch.values = values;
    batch.baselines = baselines;
    return batch;
  }
  std::vector<std::vector<double>*> per_token() {
    return {&logprobs, &rollout_logprobs, &proximal_logprobs, &advantages, &token_rewards, &values};
  }
};

// `num_groups` groups of `group_size`, up to 9 tokens each, with holes in the
// masks; the second sequence has no policy token at all. Every sequence has one
// advantage, as group estimators give it.
inline BatchData RandomBatch(uint64_t seed, int num_groups = 4, int group_size = 3) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  BatchData data;
  for (int sequence = 0; sequence < num_groups * group_size; ++sequence) {
    data.groups.push_back(100 - sequence / group_size);
    data.rewards.push_back(uniform(random) < 0.5 ? -1 : uniform(random));
    data.baselines.push_back(normal(random));
    const double advantage = normal(random);
    const int length = 1 + static_cast<int>(uniform(random) * 9);
    for (int i = 0; i < length; ++i) {
      data.mask.push_back(sequence != 1 && uniform(random) < 0.8);
      const double rollout = -2 * uniform(random) - 0.1;
      // Mostly near the policy that sampled, now and then far away.
      const double drift = normal(random) * (uniform(random) < 0.2 ? 1.5 : 0.2);
      data.rollout_logprobs.push_back(rollout);
      data.proximal_logprobs.push_back(rollout + drift * uniform(random));
      data.logprobs.push_back(rollout + drift);
      data.advantages.push_back(advantage);
      data.token_rewards.push_back(0.1 * normal(random));
      data.values.push_back(normal(random));
    }
    data.offsets.push_back(static_cast<int64_t>(data.mask.size()));
  }
  return data;
}

// The batch of these sequences, in this order.
inline BatchData Select(const BatchData& data, std::span<const size_t> sequences) {
  BatchData out;
  const SequenceLayout layout = data.layout();
  for (const size_t sequence : sequences) {
    out.groups.push_back(data.groups[sequence]);
    out.rewards.push_back(data.rewards[sequence]);
    out.baselines.push_back(data.baselines[sequence]);
    BatchData copy = data;
    const std::vector<std::vector<double>*> from = copy.per_token();
    const std::vector<std::vector<double>*> to = out.per_token();
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      out.mask.push_back(data.mask[token]);
      for (size_t i = 0; i < to.size(); ++i) to[i]->push_back((*from[i])[token]);
    }
    out.offsets.push_back(static_cast<int64_t>(out.mask.size()));
  }
  return out;
}

// The tokens of these sequences, in this order.
inline std::vector<size_t> TokensOf(const BatchData& data, std::span<const size_t> sequences) {
  std::vector<size_t> tokens;
  const SequenceLayout layout = data.layout();
  for (const size_t sequence : sequences) {
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      tokens.push_back(token);
    }
  }
  return tokens;
}

// `value` at every masked position of every per-token array.
inline void FillMasked(BatchData& data, double value) {
  for (std::vector<double>* array : data.per_token()) {
    for (size_t token = 0; token < data.mask.size(); ++token) {
      if (data.mask[token] == 0) (*array)[token] = value;
    }
  }
}

// 0, 1, ..., count - 1, shuffled.
inline std::vector<size_t> ShuffledOrder(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  std::mt19937_64 random(seed);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace pace

#endif  // PACE_TRAIN_TEST_BATCH_H_
