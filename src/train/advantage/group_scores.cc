#include "train/advantage/group_scores.h"

#include <algorithm>
#include <cmath>

#include "train/metric.h"

namespace pace {
namespace {

// verl's constant: keeps a vanishing variance from blowing up.
constexpr double kTinyVariance = 1e-8;

}  // namespace

GroupStatistics StatisticsOf(std::span<const size_t> members, std::span<const double> rewards) {
  GroupStatistics statistics;
  MeanOf mean;
  for (const size_t member : members) mean.Add(rewards[member]);
  statistics.mean = mean.value();
  statistics.equal = std::all_of(members.begin(), members.end(), [&](size_t member) {
    return rewards[member] == rewards[members.front()];
  });
  if (statistics.equal) {
    if (!members.empty()) statistics.mean = rewards[members.front()];
    return statistics;
  }
  double sum = 0;
  for (const size_t member : members) {
    const double difference = rewards[member] - statistics.mean;
    sum += difference * difference;
  }
  statistics.deviation = std::sqrt(sum / static_cast<double>(members.size() - 1));
  return statistics;
}

Advantages Broadcast(const SequenceLayout& layout, std::span<const double> scores) {
  Advantages out;
  out.advantages.assign(layout.num_tokens(), 0.0);
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] != 0) out.advantages[token] = scores[sequence];
    }
  }
  out.returns = out.advantages;
  return out;
}

std::vector<double> TokenRewards(const RewardBatch& batch) {
  const SequenceLayout& layout = batch.layout;
  std::vector<double> rewards(layout.num_tokens(), 0.0);
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    size_t last = layout.end(sequence);
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] == 0) continue;
      last = token;
      if (!batch.token_rewards.empty()) rewards[token] = batch.token_rewards[token];
    }
    if (batch.token_rewards.empty() && last < layout.end(sequence)) {
      rewards[last] = batch.rewards[sequence];
    }
  }
  return rewards;
}

void Whiten(const SequenceLayout& layout, std::vector<double>& values) {
  MeanOf mean;
  const double* first = nullptr;
  bool equal = true;
  for (size_t token = 0; token < values.size(); ++token) {
    if (layout.mask[token] == 0) continue;
    if (first == nullptr) first = &values[token];
    equal = equal && values[token] == *first;
    mean.Add(values[token]);
  }
  double scale = 0;
  if (!equal) {
    double sum = 0;
    for (size_t token = 0; token < values.size(); ++token) {
      if (layout.mask[token] == 0) continue;
      const double difference = values[token] - mean.value();
      sum += difference * difference;
    }
    scale = 1 / std::sqrt(sum / (mean.weight() - 1) + kTinyVariance);
  }
  for (size_t token = 0; token < values.size(); ++token) {
    const bool counts = layout.mask[token] != 0 && !equal;
    values[token] = counts ? (values[token] - mean.value()) * scale : 0;
  }
}

}  // namespace pace
