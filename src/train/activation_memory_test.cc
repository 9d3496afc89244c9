// What a training step holds at its peak, counted by LibTorch's allocator: no
// clock, no pages, the same in every run.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/random.h"
#include "model/cpu/kernels/isa.h"
#include "model/tiny_configs.h"
#include "train/lonely_rank.h"
#include "train/torch_trainer.h"

namespace pace {
namespace {

struct Case {
  int64_t vocab_size = 2048;
  bool bf16 = false;
  int64_t num_sequences = 1;
  int64_t length = 64;
};

ModelConfig ConfigOf(const Case& given) {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.vocab_size = given.vocab_size;
  config.hidden_size = 64;
  config.intermediate_size = 160;
  config.head_dim = 16;
  config.tied = true;
  config.max_positions = 1 << 16;
  return config;
}

std::vector<TrainSequence> SequencesOf(const Case& given) {
  const CounterRandom random(5, 0);
  std::vector<TrainSequence> sequences(static_cast<size_t>(given.num_sequences));
  for (size_t i = 0; i < sequences.size(); ++i) {
    TrainSequence& sequence = sequences[i];
    const auto length = static_cast<size_t>(given.length);
    // One more than is read: the last token is a target alone.
    for (size_t t = 0; t <= length; ++t) {
      sequence.tokens.push_back(
          static_cast<TokenId>(random.Uniform(i, t) * static_cast<double>(given.vocab_size)));
    }
    sequence.num_prompt_tokens = 1;
    sequence.mask.assign(length, 1);
    sequence.rollout_logprobs.assign(length, -7.0F);
    sequence.versions.assign(length, 0);
    sequence.group = static_cast<int64_t>(i / 2);
    sequence.reward = static_cast<double>(i % 2);
  }
  return sequences;
}

// Of the second step, whose moments and weights were there before; all
// sequences are one micro-batch.
int64_t PeakOf(const Case& given) {
  at::set_num_threads(1);
  const ModelConfig config = ConfigOf(given);
  TrainingNetwork::Options network_options;
  network_options.compute_in_bf16 = given.bf16;
  Result<TrainingNetwork> network =
      TrainingNetwork::Create(config, RandomWeights(config, 3), network_options);
  EXPECT_TRUE(network.ok());
  TrainerOptions options;
  options.token_budget = 1 << 20;
  const Result<std::unique_ptr<TorchTrainer>> trainer =
      TorchTrainer::Create(std::move(*network), options);
  EXPECT_TRUE(trainer.ok());
  const std::vector<TrainSequence> sequences = SequencesOf(given);
  EXPECT_TRUE((*trainer)->Step(sequences).ok());
  const auto memory = std::make_shared<LiveMemory>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
    EXPECT_TRUE((*trainer)->Step(sequences).ok());
  }
  return memory->peak();
}

class ActivationMemoryTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    // LibTorch then multiplies element by element, a hundred times slower.
    const bool emulated = BestIsa() == Isa::kPortable || BestIsa() == Isa::kNeon;
    if (GetParam() && emulated && std::getenv("PACE_LONG_TESTS") == nullptr) {
      GTEST_SKIP() << "bf16 products take minutes on this processor; PACE_LONG_TESTS=1 runs them";
    }
  }
};

std::string NameOfCase(const testing::TestParamInfo<bool>& info) {
  return info.param ? "bf16" : "float32";
}
INSTANTIATE_TEST_SUITE_P(Dtypes, ActivationMemoryTest, testing::Bool(), NameOfCase);

TEST_P(ActivationMemoryTest, GrowsLinearlyInTokens) {
  const auto peak = [](int64_t num_sequences) {
    return static_cast<double>(PeakOf({.bf16 = GetParam(), .num_sequences = num_sequences}));
  };
  // Logits fill their chunk in all of them.
  const double one = peak(32);
  const double two = peak(64);
  const double four = peak(128);
  EXPECT_GT(two - one, 0.3 * one);
  EXPECT_NEAR((four - two) / (two - one), 2, 0.02);
}

TEST_P(ActivationMemoryTest, GrowsLinearlyInTheLengthOfASequence) {
  const auto peak = [](int64_t length) {
    return static_cast<double>(PeakOf({.bf16 = GetParam(), .num_sequences = 2, .length = length}));
  };
  const double one = peak(1024);
  const double two = peak(2048);
  const double four = peak(4096);
  EXPECT_NEAR((four - two) / (two - one), 2, 0.02);
}

TEST_P(ActivationMemoryTest, DoesNotDependOnTheVocabulary) {
  const Case small = {.vocab_size = 2048, .bf16 = GetParam(), .num_sequences = 32};
  Case large = small;
  large.vocab_size = 8 * small.vocab_size;
  const int64_t small_peak = PeakOf(small);
  const int64_t large_peak = PeakOf(large);
  // The table is embedding and head in one. Its gradient comes from both and is
  // summed, and a bf16 network has it rounded and packed.
  const int64_t table =
      (large.vocab_size - small.vocab_size) * ConfigOf(small).hidden_size * int64_t{sizeof(float)};
  EXPECT_LE(large_peak - small_peak, 3 * table);

  // Twice the tokens cost the same in both.
  Case more = small;
  more.num_sequences = 64;
  Case more_large = large;
  more_large.num_sequences = 64;
  const auto added = static_cast<double>(PeakOf(more) - small_peak);
  const auto added_large = static_cast<double>(PeakOf(more_large) - large_peak);
  EXPECT_NEAR(added_large / added, 1, 0.02);
}

}  // namespace
}  // namespace pace
