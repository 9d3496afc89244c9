// The whole decoder: its values against the slow forward pass and the reference
// data, its bits against itself under every schedule.
#include "model/cpu/cpu_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "core/random.h"
#include "core/test_data.h"
#include "model/cpu/decoder_driver.h"
#include "model/cpu/random_floats.h"
#include "model/reference_checkpoints.h"
#include "model/reference_forward.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

TEST(CpuDecoderTest, AgreesWithTheSlowForwardPass) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 3, 0.3);
    const std::vector<TokenId> tokens = RandomTokens(41, tiny.config.vocab_size, 1);
    const ReferenceResult reference = ReferenceForward(tiny.config, weights, tokens);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      DecoderDriver driver(tiny.config, weights, {.dtype = dtype});
      const std::vector<float> logprobs = driver.Score(tokens, {41});
      double sum = 0;
      for (size_t i = 0; i + 1 < tokens.size(); ++i) {
        const double exact = LogSoftmax(reference.logits[i], tokens[i + 1]);
        const double difference = std::abs(logprobs[i] - exact);
        sum += difference;
        if (dtype == Dtype::kF32) {
          ASSERT_LT(difference, 1e-4) << tiny.name << ", row " << i;
        }
      }
      // Rounding may tip a router over in bf16, so only the mean is held.
      EXPECT_LT(sum / 40, dtype == Dtype::kF32 ? 1e-5 : 0.1) << tiny.name;
    }
  }
}

TEST(CpuDecoderTest, AgreesWithTheReferenceData) {
  const std::filesystem::path models = SharedData() / "models";
  if (!std::filesystem::exists(models)) GTEST_SKIP() << WithoutData(models, 20);
  const auto checkpoints = ReadReferenceCheckpoints(models);
  ASSERT_TRUE(checkpoints.ok()) << checkpoints.status().message();
  int num_cases = 0;
  for (const ReferenceCheckpoint& checkpoint : *checkpoints) {
    DecoderDriver driver(checkpoint.config, checkpoint.weights, {.num_threads = 2});
    for (const ReferenceCase& one : checkpoint.cases) {
      const std::string where = checkpoint.path + one.name;
      const std::vector<TokenId>& tokens = one.input_ids;
      const std::vector<float> logprobs = driver.Score(tokens, {7});
      for (size_t i = 0; i < one.logits.size(); ++i) {
        const size_t position = one.positions[i];
        if (position + 1 >= tokens.size()) continue;
        EXPECT_NEAR(logprobs[position], LogSoftmax(one.logits[i], tokens[position + 1]), 5e-5)
            << where;
      }
      const std::vector<Sampled> generated =
          driver.Generate(tokens, static_cast<int64_t>(one.greedy.size()), {.temperature = 0});
      for (size_t i = 0; i < one.greedy.size(); ++i) {
        EXPECT_EQ(generated[i].token, one.greedy[i]) << where << i;
      }
      ++num_cases;
    }
  }
  EXPECT_GT(num_cases, 0);
}

// The shapes whose bits are compared, with a name for messages.
std::vector<TinyConfig> BitConfigs() {
  std::vector<TinyConfig> configs;
  for (const TinyConfig& tiny : TinyConfigs()) {
    if (tiny.name == "qwen3 with biases" || tiny.name == "qwen3_moe with a dense layer" ||
        tiny.name == "llama") {
      configs.push_back(tiny);
    }
  }
  ModelConfig wide = TinyModel(Architecture::kQwen3);
  wide.hidden_size = 96;
  wide.intermediate_size = 160;
  wide.num_heads = 6;
  wide.head_dim = 20;
  wide.vocab_size = 300;
  configs.push_back({"wide", wide});
  return configs;
}

TEST(CpuDecoderTest, BitsDependOnNeitherChunksNorThreadsNorBlocks) {
  for (const TinyConfig& tiny : BitConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 4, 0.2);
    const std::vector<TokenId> tokens = RandomTokens(67, tiny.config.vocab_size, 2);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      DecoderDriver whole(tiny.config, weights, {.dtype = dtype});
      const auto expected = BitsOf(whole.Score(tokens, {67}));
      EXPECT_EQ(BitsOf(whole.Score(tokens, {1})), expected) << tiny.name;
      EXPECT_EQ(BitsOf(whole.Score(tokens, {20, 1, 1, 9, 30, 2})), expected) << tiny.name;
      DecoderDriver other(tiny.config, weights,
                          {.dtype = dtype, .num_threads = 3, .reversed_blocks = true});
      EXPECT_EQ(BitsOf(other.Score(tokens, {67})), expected) << tiny.name;
      EXPECT_EQ(BitsOf(other.Score(tokens, {5, 17, 1, 2})), expected) << tiny.name;
    }
  }
}

TEST(CpuDecoderTest, EveryLevelComputesTheSameBits) {
  for (const TinyConfig& tiny : BitConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 5, 0.2);
    const std::vector<TokenId> tokens = RandomTokens(35, tiny.config.vocab_size, 3);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      DecoderDriver portable(tiny.config, weights, {.dtype = dtype, .isa = Isa::kPortable});
      const auto expected = BitsOf(portable.Score(tokens, {35}));
      for (const Isa isa : IsaLevels()) {
        // BFMMLA rounds in another way.
        if (isa == Isa::kNeonBf16 && dtype == Dtype::kBF16) continue;
        DecoderDriver driver(tiny.config, weights, {.dtype = dtype, .isa = isa});
        EXPECT_EQ(BitsOf(driver.Score(tokens, {12, 1, 22})), expected)
            << tiny.name << " " << IsaName(isa);
      }
    }
  }
}

// Sequences of different lengths advance by random amounts in common passes.
TEST(CpuDecoderTest, BitsDoNotDependOnWhatElseIsInThePass) {
  const CounterRandom random(6, 1);
  for (const TinyConfig& tiny : BitConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 6, 0.2);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      DecoderDriver driver(tiny.config, weights, {.dtype = dtype, .num_threads = 2});
      std::vector<DecoderDriver::Sequence> sequences;
      for (uint64_t s = 0; s < 9; ++s) {
        sequences.push_back({.tokens = RandomTokens(20 + 5 * static_cast<int64_t>(s),
                                                    tiny.config.vocab_size, 100 + s)});
      }
      for (uint64_t round = 0;; ++round) {
        std::vector<DecoderDriver::Sequence*> moving;
        std::vector<int64_t> amounts;
        for (uint64_t s = 0; s < sequences.size(); ++s) {
          const int64_t left =
              static_cast<int64_t>(sequences[s].tokens.size()) - sequences[s].num_cached;
          const auto wish = static_cast<int64_t>(random.Uniform(round, s) * 13);
          if (std::min(left, wish) < 1) continue;
          moving.push_back(&sequences[s]);
          amounts.push_back(std::min(left, wish));
        }
        if (!moving.empty()) driver.Advance(moving, amounts);
        if (std::all_of(sequences.begin(), sequences.end(), [](const auto& sequence) {
              return sequence.num_cached == static_cast<int64_t>(sequence.tokens.size());
            })) {
          break;
        }
      }
      DecoderDriver alone(tiny.config, weights, {.dtype = dtype});
      for (const DecoderDriver::Sequence& sequence : sequences) {
        EXPECT_EQ(BitsOf(sequence.logprobs), BitsOf(alone.Score(sequence.tokens, {100})))
            << tiny.name;
      }
    }
  }
}

TEST(CpuDecoderTest, CopiedBlocksContinueAsTheirOriginal) {
  const TinyConfig tiny = BitConfigs().front();
  const WeightSet weights = RandomWeights(tiny.config, 7, 0.2);
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
    DecoderDriver driver(tiny.config, weights, {.dtype = dtype});
    DecoderDriver::Sequence first{.tokens = RandomTokens(40, tiny.config.vocab_size, 8)};
    const int64_t chunk = 27;
    DecoderDriver::Sequence* one = &first;
    driver.Advance({&one, 1}, {&chunk, 1});
    // Shares the whole block, copies the partial one, then goes its own way.
    DecoderDriver::Sequence second = first;
    second.blocks.resize(1);
    driver.Reserve(second, 32);
    const BlockCopy copy = {.from = first.blocks[1], .to = second.blocks[1]};
    driver.decoder().CopyBlocks({&copy, 1});
    for (size_t i = 28; i < 40; ++i) second.tokens[i] = first.tokens[67 - i];
    const int64_t rest = 13;
    for (DecoderDriver::Sequence* sequence : {&second, &first}) {
      driver.Advance({&sequence, 1}, {&rest, 1});
      DecoderDriver alone(tiny.config, weights, {.dtype = dtype});
      EXPECT_EQ(BitsOf(sequence->logprobs), BitsOf(alone.Score(sequence->tokens, {40})));
    }
  }
}

TEST(CpuDecoderTest, SamplesAndScoresOfOneRowAgree) {
  const TinyConfig tiny = BitConfigs().back();
  DecoderDriver driver(tiny.config, RandomWeights(tiny.config, 9, 0.3), {.num_threads = 2});
  const std::vector<BlockId> blocks = {3, 1};
  Pass pass;
  pass.tokens = RandomTokens(20, tiny.config.vocab_size, 4);
  pass.chunks.push_back({.start = 0, .num_tokens = 20, .blocks = blocks});
  for (int64_t i = 0; i < 200; ++i) {
    const SamplingOptions options = {.temperature = i % 2 == 0 ? 1.0 : 0.7};
    pass.samples.push_back({.row = (i * 3) % 20,
                            .options = options,
                            .key = {.seed = 1, .prompt = 0, .response = i, .token = 0}});
  }
  const PassResult drawn = driver.decoder().Run(pass).value();
  ASSERT_EQ(drawn.samples.size(), 200U);
  for (size_t i = 0; i < pass.samples.size(); ++i) {
    pass.scores.push_back({.row = pass.samples[i].row,
                           .target = drawn.samples[i].token,
                           .scale = pass.samples[i].options.scale()});
  }
  const PassResult both = driver.decoder().Run(pass).value();
  for (size_t i = 0; i < pass.samples.size(); ++i) {
    EXPECT_EQ(both.samples[i].token, drawn.samples[i].token);
    EXPECT_EQ(both.logprobs[i], drawn.samples[i].logprob);
  }
}

TEST(CpuDecoderTest, KeptStatesScoreAsThePassesDid) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 3, 0.3);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      DecoderDriver driver(tiny.config, weights,
                           {.dtype = dtype, .reversed_blocks = true, .cache_states = true});
      for (const int64_t chunk : {1, 7, 200}) {
        const auto [passes, kept] =
            driver.ScoreTwice(RandomTokens(150, tiny.config.vocab_size, 1), chunk);
        EXPECT_EQ(passes, kept) << tiny.name << ", chunks of " << chunk;
      }
      EXPECT_GT(driver.decoder().scoring_time(), Seconds(0));
    }
  }
}

TEST(CpuDecoderTest, NewWeightsTakeEffectAndTheCacheKeepsWhatTheOldOnesComputed) {
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  const WeightSet old_weights = RandomWeights(config, 10, 0.3);
  const WeightSet new_weights = RandomWeights(config, 11, 0.3);
  const std::vector<TokenId> tokens = RandomTokens(24, config.vocab_size, 5);
  DecoderDriver driver(config, old_weights, {});
  DecoderDriver::Sequence mixed{.tokens = tokens};
  DecoderDriver::Sequence* one = &mixed;
  const int64_t half = 12;
  driver.Advance({&one, 1}, {&half, 1});
  driver.decoder().Install(driver.decoder().Prepare(new_weights).value());
  driver.Advance({&one, 1}, {&half, 1});
  DecoderDriver fresh(config, new_weights, {});
  const std::vector<float> all_new = fresh.Score(tokens, {24});
  EXPECT_EQ(BitsOf(driver.Score(tokens, {24})), BitsOf(all_new));
  EXPECT_NE(mixed.logprobs, all_new);
  EXPECT_NE(std::vector<float>(mixed.logprobs.begin() + 12, mixed.logprobs.end()),
            std::vector<float>(all_new.begin() + 12, all_new.end()));
}

TEST(CpuDecoderTest, QuantizedWeightsAreTheRoundedOnes) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 3, 0.3);
    const std::vector<TokenId> tokens = RandomTokens(41, tiny.config.vocab_size, 1);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      DecoderDriver quantized(tiny.config, weights,
                              {.dtype = dtype, .quantization = Quantization::kFloat8});
      DecoderDriver rounded(tiny.config, RoundedToFloat8(tiny.config, weights), {.dtype = dtype});
      DecoderDriver exact(tiny.config, weights, {.dtype = dtype});
      const std::vector<float> logprobs = quantized.Score(tokens, {41});
      EXPECT_EQ(logprobs, rounded.Score(tokens, {41})) << tiny.name;
      EXPECT_NE(logprobs, exact.Score(tokens, {41})) << tiny.name;
    }
  }
}

TEST(CpuDecoderTest, PreparesBesideARun) {
  const ModelConfig config = TinyModel(Architecture::kQwen3Moe);
  const WeightSet weights = RandomWeights(config, 12, 0.2);
  DecoderDriver driver(config, weights, {.num_threads = 2});
  const std::vector<TokenId> tokens = RandomTokens(30, config.vocab_size, 6);
  const auto expected = BitsOf(driver.Score(tokens, {30}));
  std::shared_ptr<const DecoderWeights> prepared;
  std::thread trainer([&] {
    for (int i = 0; i < 5; ++i) prepared = driver.decoder().Prepare(weights).value();
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(BitsOf(driver.Score(tokens, {7})), expected);
  trainer.join();
  driver.decoder().Install(prepared);
  EXPECT_EQ(BitsOf(driver.Score(tokens, {30})), expected);
}

TEST(DecoderOptionsTest, RefusesWhatHasNoMeaning) {
  EXPECT_TRUE((DecoderOptions{.num_blocks = 1}.Validate().ok()));
  for (const DecoderOptions& options :
       {DecoderOptions{.dtype = Dtype::kF16, .num_blocks = 1}, DecoderOptions{.num_blocks = 0},
        DecoderOptions{.num_blocks = 1, .num_threads = 0},
        DecoderOptions{.num_blocks = 1, .num_threads = 5000}}) {
    EXPECT_FALSE(options.Validate().ok());
    EXPECT_FALSE(CreateCpuDecoder(TinyModel(Architecture::kLlama), options).ok());
  }
}

}  // namespace
}  // namespace pace
