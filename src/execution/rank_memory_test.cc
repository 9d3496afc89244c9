// The plan of a trainer's memory against what LibTorch's allocator counts in a real step.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <memory>

#include "cluster/memory_plan.h"
#include "execution/gpu_plan.h"
#include "model/tiny_configs.h"
#include "train/lonely_rank.h"
#include "train/torch_trainer.h"

namespace pace {
namespace {

ModelConfig SmallModel(Architecture architecture) {
  ModelConfig config = TinyModel(architecture);
  // Logits are cut into chunks that differ between devices; few words leave them small.
  config.vocab_size = 64;
  config.hidden_size = 64;
  config.intermediate_size = 160;
  config.head_dim = 16;
  return config;
}

constexpr int64_t kNumSequences = 16;
constexpr int64_t kLength = 64;

std::vector<TrainSequence> SmallBatch(const ModelConfig& config) {
  std::vector<TrainSequence> sequences(kNumSequences);
  for (size_t i = 0; i < sequences.size(); ++i) {
    TrainSequence& sequence = sequences[i];
    for (int64_t t = 0; t <= kLength; ++t) {
      sequence.tokens.push_back(
          static_cast<TokenId>((7 * t + static_cast<int64_t>(i)) % config.vocab_size));
    }
    sequence.num_prompt_tokens = 1;
    sequence.mask.assign(kLength, 1);
    sequence.rollout_logprobs.assign(kLength, -6.0F);
    sequence.versions.assign(kLength, 0);
    sequence.group = static_cast<int64_t>(i / 2);
    sequence.reward = static_cast<double>(i % 2);
  }
  return sequences;
}

struct Counted {
  int64_t kept = 0;  // after a step
  int64_t peak = 0;
};

Counted CountStep(const ModelConfig& config, bool recompute, int64_t num_ranks, ShardMode shard) {
  at::set_num_threads(1);
  const auto memory = std::make_shared<LiveMemory>();
  LonelyRank ranks(num_ranks, *memory);
  Counted counted;
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  const WeightSet weights = RandomWeights(config, 3);
  const int64_t before = memory->bytes();
  TrainingNetwork::Options network_options;
  network_options.recompute_layers = recompute;
  Result<TrainingNetwork> network = TrainingNetwork::Create(config, weights, network_options);
  EXPECT_TRUE(network.ok());
  TrainerOptions options;
  options.token_budget = kNumSequences * kLength;
  options.shard = shard;
  const Result<std::unique_ptr<TorchTrainer>> trainer =
      TorchTrainer::Create(std::move(*network), options, std::nullopt, &ranks);
  EXPECT_TRUE(trainer.ok());
  const std::vector<TrainSequence> sequences = SmallBatch(config);
  EXPECT_TRUE((*trainer)->Step(sequences).ok());
  counted.kept = memory->bytes() - before;
  memory->StartPeak();
  EXPECT_TRUE((*trainer)->Step(sequences).ok());
  counted.peak = memory->peak() - before;
  return counted;
}

int64_t BytesOf(const std::vector<MemoryPart>& parts, std::string_view name) {
  for (const MemoryPart& part : parts) {
    if (part.name == name) return part.num_bytes;
  }
  return 0;
}

struct Ranks {
  int64_t count = 1;
  ShardMode shard = ShardMode::kNone;
};

class RankMemoryTest : public testing::TestWithParam<std::tuple<Architecture, bool, Ranks>> {};

INSTANTIATE_TEST_SUITE_P(
    Shapes, RankMemoryTest,
    testing::Combine(
        testing::Values(Architecture::kQwen3, Architecture::kQwen3Moe), testing::Bool(),
        testing::Values(Ranks{}, Ranks{2, ShardMode::kOptimizer}, Ranks{4, ShardMode::kOptimizer},
                        Ranks{2, ShardMode::kGradients}, Ranks{4, ShardMode::kGradients},
                        Ranks{2, ShardMode::kFull}, Ranks{4, ShardMode::kFull})));

TEST_P(RankMemoryTest, ThePlanIsWhatTheAllocatorCounts) {
  const auto [architecture, recompute, ranks] = GetParam();
  const ModelConfig config = SmallModel(architecture);
  // `full` computes layers again in any case.
  const bool computes_again = recompute || ranks.shard == ShardMode::kFull;
  // A rank of several has a share of the sequences.
  const std::vector<MemoryPart> parts =
      RankMemory(NetworkSizeOf(config), {.num_ranks = ranks.count,
                                         .shard = ranks.shard,
                                         .in_bf16 = false,
                                         .recompute_layers = computes_again,
                                         .tokens = kNumSequences * kLength / ranks.count});
  const Counted counted = CountStep(config, recompute, ranks.count, ranks.shard);
  const int64_t state = BytesOf(parts, "weights") + BytesOf(parts, "moments");
  const int64_t gradients = BytesOf(parts, "gradients");
  // Weights and moments stay, and gradients may.
  EXPECT_LE(counted.kept, (state + gradients) * 102 / 100);
  const int64_t count = config.num_parameters();
  const int64_t weights = ranks.shard == ShardMode::kFull ? count / ranks.count : count;
  EXPECT_GE(counted.kept, 4 * weights + 8 * count / ranks.count);
  // Engines take no snapshot here.
  const int64_t planned = TotalBytes(parts) - BytesOf(parts, "snapshot for engines");
  EXPECT_LE(counted.peak, planned);
  // The plan is made for CUDA; kernels of the CPU keep less.
  EXPECT_GE(counted.peak, planned * 2 / 5) << planned;
}

TEST(RankMemoryShapesTest, TheSettingsAndTheModelAgreeOnItsSize) {
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kQwen3Moe}) {
    const ModelConfig config = SmallModel(architecture);
    ModelOptions model;
    model.num_layers = config.num_layers;
    model.hidden = config.hidden_size;
    model.num_heads = config.num_heads;
    model.num_kv_heads = config.num_kv_heads;
    model.head_dim = config.head_dim;
    model.ffn = config.intermediate_size;
    model.vocab = config.vocab_size;
    model.tied_embeddings = config.tied;
    if (config.moe) {
      model.num_experts = config.moe->num_experts;
      model.experts_per_token = config.moe->num_experts_per_token;
      model.expert_ffn = config.moe->intermediate_size;
    }
    const NetworkSize planned = NetworkOf(model);
    const NetworkSize real = NetworkSizeOf(config);
    EXPECT_EQ(planned.num_parameters, real.num_parameters);
    EXPECT_EQ(planned.layer_parameters, real.layer_parameters);
    EXPECT_EQ(planned.layer_elements, real.layer_elements);
  }
}

}  // namespace
}  // namespace pace
