#include "bench/train_batch.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace pace {
namespace {

constexpr uint64_t kSeed = 20261115;
enum Stream : uint32_t { kPromptLength, kResponseLength, kPromptToken, kResponseToken, kReward };

}  // namespace

std::vector<TrainSequence> MakeTrainBatch(const ModelConfig& config,
                                          const TrainBatchOptions& options) {
  const auto draw = [](Stream stream, int64_t a, int64_t b = 0) {
    return CounterRandom(kSeed, stream).Uniform(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
  };
  const auto token = [&](double u) {
    return static_cast<TokenId>(u * static_cast<double>(config.vocab_size));
  };
  const auto spread = static_cast<double>(options.max_prompt_tokens - options.min_prompt_tokens);
  std::vector<TrainSequence> sequences;
  for (int64_t i = 0; i < options.num_groups * options.group_size; ++i) {
    TrainSequence& sequence = sequences.emplace_back();
    sequence.group = i / options.group_size;
    sequence.num_prompt_tokens = options.min_prompt_tokens +
                                 static_cast<int64_t>(spread * draw(kPromptLength, sequence.group));
    const double normal = CounterRandom(kSeed, kResponseLength).Normal(static_cast<uint64_t>(i));
    const double length = options.median_response_tokens * std::exp(options.log_deviation * normal);
    const auto num_tokens = static_cast<int64_t>(
        std::clamp(length, 1.0, static_cast<double>(options.max_response_tokens)));
    for (int64_t t = 0; t < sequence.num_prompt_tokens; ++t) {
      sequence.tokens.push_back(token(draw(kPromptToken, sequence.group, t)));
    }
    for (int64_t t = 0; t < num_tokens; ++t) {
      sequence.tokens.push_back(token(draw(kResponseToken, i, t)));
    }
    sequence.mask.assign(static_cast<size_t>(num_tokens), 1);
    sequence.rollout_logprobs.assign(static_cast<size_t>(num_tokens), 0);
    sequence.versions.assign(static_cast<size_t>(num_tokens), 0);
    const int64_t member = i % options.group_size;
    sequence.reward = member < 2 ? static_cast<double>(member) : std::round(draw(kReward, i));
  }
  return sequences;
}

int64_t CountTokens(const std::vector<TrainSequence>& sequences) {
  int64_t count = 0;
  for (const TrainSequence& sequence : sequences) {
    count += static_cast<int64_t>(sequence.tokens.size());
  }
  return count;
}

}  // namespace pace
