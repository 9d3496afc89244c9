// The decoder on a GPU: its values against the slow forward pass and the CPU,
// and against itself under other schedules. To rounding: it promises no bits.
#include "model/cuda/decode/cuda_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/random.h"
#include "model/cpu/decoder_driver.h"
#include "model/devices.h"
#include "model/reference_forward.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

double MeanDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(std::max<size_t>(a.size(), 1));
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return largest;
}

// Heads and widths that the fast kernels are made for.
ModelConfig WideModel(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim) {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.vocab_size = 1000;
  config.hidden_size = 256;
  config.intermediate_size = 344;
  config.num_heads = num_heads;
  config.num_kv_heads = num_kv_heads;
  config.head_dim = head_dim;
  config.max_positions = 4096;
  return config;
}

// Passes of one or two rows run all layers in one kernel (persistent_layers.h).
ModelConfig OneKernelModel(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim) {
  ModelConfig config = WideModel(num_heads, num_kv_heads, head_dim);
  config.intermediate_size = 384;
  return config;
}

std::vector<TinyConfig> Configs() {
  std::vector<TinyConfig> all = TinyConfigs();
  all.push_back({"heads of 128", WideModel(8, 2, 128)});
  all.push_back({"heads of 64, three to one", WideModel(9, 3, 64)});
  ModelConfig odd = WideModel(4, 2, 32);
  odd.intermediate_size = 172;
  odd.hidden_size = 68;
  odd.tied = true;
  all.push_back({"widths that need padding", odd});
  all.push_back({"layers in one kernel, heads of 128", OneKernelModel(8, 2, 128)});
  ModelConfig biased = OneKernelModel(9, 3, 64);
  biased.qk_norm = false;
  biased.qkv_bias = biased.output_bias = biased.mlp_bias = true;
  all.push_back({"layers in one kernel, heads of 64, biases", biased});
  return all;
}

class CudaDecoderTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<CudaDevice> device = FindCudaDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }

  static DecoderDriver Driver(const ModelConfig& config, const WeightSet& weights, Dtype dtype,
                              int64_t num_blocks = 128, bool reversed = false,
                              Quantization quantization = Quantization::kNone) {
    const DriverOptions options = {
        .dtype = dtype, .num_blocks = num_blocks, .reversed_blocks = reversed};
    return {std::move(CreateDecoder(DeviceKind::kCuda, config,
                                    {.dtype = dtype,
                                     .quantization = quantization,
                                     .num_blocks = num_blocks,
                                     .num_threads = 1,
                                     .cache_states = true}))
                .value(),
            weights, options};
  }
};

TEST_F(CudaDecoderTest, AgreesWithTheSlowForwardPass) {
  for (const TinyConfig& tiny : Configs()) {
    const WeightSet weights =
        RandomWeights(tiny.config, 3, tiny.config.hidden_size > 100 ? 0.1 : 0.3);
    const std::vector<TokenId> tokens = RandomTokens(41, tiny.config.vocab_size, 1);
    const ReferenceResult reference = ReferenceForward(tiny.config, weights, tokens);
    std::vector<float> exact;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      exact.push_back(static_cast<float>(LogSoftmax(reference.logits[i], tokens[i + 1])));
    }
    for (const std::vector<int64_t>& chunks : {std::vector<int64_t>{41}, {1}, {20, 1, 1, 9, 2}}) {
      DecoderDriver floats = Driver(tiny.config, weights, Dtype::kF32);
      EXPECT_LT(LargestDifference(floats.Score(tokens, chunks), exact), 2e-4) << tiny.name;
      DecoderDriver halves = Driver(tiny.config, weights, Dtype::kBF16);
      DecoderDriver cpu(tiny.config, weights, {.dtype = Dtype::kBF16});
      const double distance = MeanDifference(halves.Score(tokens, chunks), exact);
      // As far as the CPU's bf16, within a factor.
      const double allowed = 2 * MeanDifference(cpu.Score(tokens, {41}), exact) + 0.01;
      EXPECT_LT(distance, allowed) << tiny.name;
    }
  }
}

// Experts that are stored in eight bits only, if their width is a multiple of sixteen.
ModelConfig EightBitExperts(int64_t width) {
  ModelConfig config = WideModel(4, 2, 64);
  config.architecture = Architecture::kQwen3Moe;
  config.moe = MoeConfig{.num_experts = 12,
                         .num_experts_per_token = 3,
                         .intermediate_size = width,
                         .normalize_weights = true,
                         .sparse_step = 1,
                         .dense_layers = {}};
  return config;
}

// Passes of one, two, up to eight and more rows read different forms of the same weights.
TEST_F(CudaDecoderTest, QuantizedWeightsAreTheRoundedOnes) {
  std::vector<TinyConfig> configs = Configs();
  configs.push_back({"experts in eight bits", EightBitExperts(96)});
  configs.push_back({"experts too narrow for eight bits", EightBitExperts(40)});
  for (const TinyConfig& tiny : configs) {
    // Halves first, so that they and eight bits hold the same values.
    const WeightSet weights = InDtype(
        tiny.config, RandomWeights(tiny.config, 3, tiny.config.hidden_size > 100 ? 0.1 : 0.3),
        Dtype::kBF16);
    const WeightSet rounded = RoundedToFloat8(tiny.config, weights);
    const std::vector<TokenId> tokens = RandomTokens(41, tiny.config.vocab_size, 1);
    const std::vector<float> exact = Driver(tiny.config, rounded, Dtype::kF32).Score(tokens, {41});
    for (const std::vector<int64_t>& chunks :
         {std::vector<int64_t>{41}, {1}, {2}, {5}, {8}, {20, 1, 1, 9, 2}}) {
      const auto score = [&](const WeightSet& of, Dtype dtype, Quantization quantization) {
        return Driver(tiny.config, of, dtype, 128, false, quantization).Score(tokens, chunks);
      };
      EXPECT_LT(LargestDifference(score(weights, Dtype::kF32, Quantization::kFloat8), exact), 1e-4)
          << tiny.name;
      const double of_halves =
          MeanDifference(score(rounded, Dtype::kBF16, Quantization::kNone), exact);
      EXPECT_LT(MeanDifference(score(weights, Dtype::kBF16, Quantization::kFloat8), exact),
                2 * of_halves + 0.01)
          << tiny.name << ", chunks of " << chunks[0];
    }
  }
}

TEST_F(CudaDecoderTest, KeptStatesScoreAsThePassesDid) {
  for (const TinyConfig& tiny : Configs()) {
    const WeightSet weights =
        RandomWeights(tiny.config, 3, tiny.config.hidden_size > 100 ? 0.1 : 0.3);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
      DecoderDriver driver = Driver(tiny.config, weights, dtype, 128, /*reversed=*/true);
      for (const int64_t chunk : {1, 7, 1200}) {
        // Of wide models more than are scored at once.
        const int64_t length = std::min<int64_t>(1200, tiny.config.max_positions);
        const auto [passes, kept] =
            driver.ScoreTwice(RandomTokens(length, tiny.config.vocab_size, 1), chunk);
        // The same states; products of other numbers of rows may sum in another order.
        EXPECT_LT(LargestDifference(passes, kept), dtype == Dtype::kF32 ? 1e-4 : 1e-2)
            << tiny.name << ", chunks of " << chunk;
      }
    }
  }
}

TEST_F(CudaDecoderTest, ValuesDependOnNeitherBlocksNorNeighbours) {
  const ModelConfig config = WideModel(8, 2, 128);
  const WeightSet weights = RandomWeights(config, 4, 0.1);
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
    const double allowed = dtype == Dtype::kF32 ? 1e-4 : 0.15;
    DecoderDriver alone = Driver(config, weights, dtype);
    DecoderDriver driver = Driver(config, weights, dtype, 600, true);
    std::vector<DecoderDriver::Sequence> sequences;
    for (uint64_t s = 0; s < 40; ++s) {
      sequences.push_back(
          {.tokens = RandomTokens(30 + static_cast<int64_t>(s) * 3, config.vocab_size, 100 + s)});
    }
    const CounterRandom random(6, 1);
    for (uint64_t round = 0;; ++round) {
      std::vector<DecoderDriver::Sequence*> moving;
      std::vector<int64_t> amounts;
      for (uint64_t s = 0; s < sequences.size(); ++s) {
        const int64_t left =
            static_cast<int64_t>(sequences[s].tokens.size()) - sequences[s].num_cached;
        const auto wish = 1 + static_cast<int64_t>(random.Uniform(round, s) * 40);
        if (left == 0) continue;
        moving.push_back(&sequences[s]);
        amounts.push_back(std::min(left, round % 2 == 0 ? 1 : wish));
      }
      if (moving.empty()) break;
      driver.Advance(moving, amounts);
    }
    for (const DecoderDriver::Sequence& sequence : sequences) {
      EXPECT_LT(LargestDifference(sequence.logprobs, alone.Score(sequence.tokens, {1000})),
                allowed);
    }
  }
}

// Samples for several sequences at once, in passes that run as graphs.
std::vector<std::vector<Sampled>> SampleTogether(DecoderDriver& driver, size_t num_sequences,
                                                 int64_t num_tokens,
                                                 const SamplingOptions& sampling,
                                                 std::vector<DecoderDriver::Sequence>& sequences) {
  std::vector<std::vector<Sampled>> sampled(num_sequences);
  for (int64_t token = 0; token < num_tokens; ++token) {
    Pass pass;
    for (size_t s = 0; s < num_sequences; ++s) {
      DecoderDriver::Sequence& sequence = sequences[s];
      driver.Reserve(sequence, sequence.num_cached + 1);
      pass.tokens.push_back(sequence.tokens[static_cast<size_t>(sequence.num_cached)]);
      pass.chunks.push_back(
          {.start = sequence.num_cached, .num_tokens = 1, .blocks = sequence.blocks});
      pass.samples.push_back(
          {.row = static_cast<int64_t>(s),
           .options = sampling,
           .key = {.seed = 3, .prompt = static_cast<int64_t>(s), .response = 0, .token = token}});
    }
    const PassResult result = driver.decoder().Run(pass).value();
    for (size_t s = 0; s < num_sequences; ++s) {
      sampled[s].push_back(result.samples[s]);
      ++sequences[s].num_cached;
      sequences[s].tokens.push_back(result.samples[s].token);
    }
  }
  return sampled;
}

TEST_F(CudaDecoderTest, GraphsSampleWhatTheScoresSay) {
  const ModelConfig config = OneKernelModel(8, 2, 128);
  const WeightSet weights = RandomWeights(config, 8, 0.1);
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
    DecoderDriver driver = Driver(config, weights, dtype, 1200);
    for (const size_t batch : {1U, 2U, 3U, 33U, 70U}) {
      for (const SamplingOptions& sampling :
           {SamplingOptions{.temperature = 0.9},
            SamplingOptions{.temperature = 1, .top_k = 50, .top_p = 0.9}}) {
        std::vector<DecoderDriver::Sequence> sequences;
        for (uint64_t s = 0; s < batch; ++s) {
          sequences.push_back({.tokens = RandomTokens(1, config.vocab_size, 300 + s)});
        }
        const auto sampled = SampleTogether(driver, batch, 20, sampling, sequences);
        DecoderDriver again = Driver(config, weights, dtype);
        for (size_t s = 0; s < batch; s += 7) {
          Pass pass;
          pass.tokens.assign(sequences[s].tokens.begin(), sequences[s].tokens.end() - 1);
          const std::vector<BlockId> blocks = {5, 3};
          pass.chunks.push_back({.start = 0, .num_tokens = 20, .blocks = blocks});
          for (int64_t i = 0; i < 20; ++i) {
            pass.scores.push_back({.row = i,
                                   .target = sequences[s].tokens[static_cast<size_t>(i) + 1],
                                   .scale = sampling.scale()});
          }
          const std::vector<float> scores = again.decoder().Run(pass).value().logprobs;
          std::vector<float> drawn;
          for (const Sampled& one : sampled[s]) drawn.push_back(one.logprob);
          EXPECT_LT(LargestDifference(drawn, scores), dtype == Dtype::kF32 ? 1e-4 : 0.15) << batch;
        }
      }
    }
  }
}

TEST_F(CudaDecoderTest, FewRowsAttendToLongContexts) {
  const ModelConfig config = OneKernelModel(8, 2, 128);
  const WeightSet weights = RandomWeights(config, 14, 0.1);
  DecoderDriver alone = Driver(config, weights, Dtype::kBF16, 600);
  DecoderDriver driver = Driver(config, weights, Dtype::kBF16, 600, true);
  DecoderDriver::Sequence longer{.tokens = RandomTokens(4080, config.vocab_size, 1)};
  DecoderDriver::Sequence shorter{.tokens = RandomTokens(540, config.vocab_size, 2)};
  const std::vector<DecoderDriver::Sequence*> both = {&longer, &shorter};
  driver.Advance(both, std::vector<int64_t>{4040, 500});
  for (int i = 0; i < 39; ++i) driver.Advance(both, std::vector<int64_t>{1, 1});
  for (const DecoderDriver::Sequence* const sequence : both) {
    EXPECT_LT(LargestDifference(sequence->logprobs, alone.Score(sequence->tokens, {5000})), 0.15);
  }
}

TEST_F(CudaDecoderTest, DrawsWhatTheCpuDraws) {
  const ModelConfig config = WideModel(9, 3, 64);
  const WeightSet weights = RandomWeights(config, 9, 0.1);
  DecoderDriver ours = Driver(config, weights, Dtype::kF32);
  DecoderDriver cpu(config, weights, {});
  const std::vector<TokenId> prompt = RandomTokens(10, config.vocab_size, 5);
  for (const SamplingOptions& sampling :
       {SamplingOptions{.temperature = 0}, SamplingOptions{.temperature = 1},
        SamplingOptions{.temperature = 0.8, .top_k = 20, .top_p = 0.9, .min_p = 0.01}}) {
    const std::vector<Sampled> a = ours.Generate(prompt, 40, sampling);
    const std::vector<Sampled> b = cpu.Generate(prompt, 40, sampling);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].token, b[i].token) << i;
      EXPECT_NEAR(a[i].logprob, b[i].logprob, 1e-4);
      EXPECT_NEAR(a[i].sampled_logprob, b[i].sampled_logprob, 1e-4);
    }
  }
}

TEST_F(CudaDecoderTest, NewWeightsTakeEffectInGraphsToo) {
  const ModelConfig config = WideModel(8, 2, 128);
  const WeightSet old_weights = RandomWeights(config, 10, 0.1);
  const WeightSet new_weights = RandomWeights(config, 11, 0.1);
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
    DecoderDriver driver = Driver(config, old_weights, dtype);
    std::vector<DecoderDriver::Sequence> sequences(4);
    for (auto& sequence : sequences) sequence.tokens = {7};
    SampleTogether(driver, 4, 10, {.temperature = 1}, sequences);  // graphs are captured
    driver.decoder().Install(driver.decoder().Prepare(new_weights).value());
    std::vector<DecoderDriver::Sequence> again(4);
    for (auto& sequence : again) sequence.tokens = {9};
    const auto ours = SampleTogether(driver, 4, 10, {.temperature = 1}, again);
    DecoderDriver fresh = Driver(config, new_weights, dtype);
    std::vector<DecoderDriver::Sequence> expected(4);
    for (auto& sequence : expected) sequence.tokens = {9};
    const auto theirs = SampleTogether(fresh, 4, 10, {.temperature = 1}, expected);
    for (size_t s = 0; s < 4; ++s) {
      EXPECT_EQ(again[s].tokens, expected[s].tokens);
      for (size_t i = 0; i < 10; ++i) EXPECT_EQ(ours[s][i].logprob, theirs[s][i].logprob);
    }
  }
}

TEST_F(CudaDecoderTest, AnInterruptedResponseLosesNoToken) {
  const ModelConfig config = WideModel(8, 2, 128);
  const WeightSet old_weights = RandomWeights(config, 12, 0.1);
  const WeightSet new_weights = RandomWeights(config, 13, 0.1);
  DecoderDriver driver = Driver(config, old_weights, Dtype::kBF16);
  std::vector<DecoderDriver::Sequence> sequences(3);
  for (auto& sequence : sequences) sequence.tokens = {7};
  SampleTogether(driver, 3, 50, {.temperature = 1}, sequences);
  const std::vector<TokenId> before = sequences[1].tokens;
  driver.decoder().Install(driver.decoder().Prepare(new_weights).value());
  // The rebuild: every token under the new weights, all but the last scored.
  for (auto& sequence : sequences) {
    sequence.num_cached = 0;
    DecoderDriver::Sequence* one = &sequence;
    const auto length = static_cast<int64_t>(sequence.tokens.size()) - 1;
    driver.Advance({&one, 1}, {&length, 1});
    EXPECT_EQ(std::ssize(sequence.logprobs), length);
  }
  SampleTogether(driver, 3, 50, {.temperature = 1}, sequences);
  EXPECT_EQ(std::ssize(sequences[1].tokens), 101);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), sequences[1].tokens.begin()));
  DecoderDriver fresh = Driver(config, new_weights, Dtype::kBF16);
  const std::vector<float> all = fresh.Score(before, {1000});
  EXPECT_LT(LargestDifference(sequences[1].logprobs, all), 0.15);
}

TEST_F(CudaDecoderTest, CopiedBlocksContinueAsTheirOriginal) {
  const ModelConfig config = WideModel(8, 2, 128);
  const WeightSet weights = RandomWeights(config, 7, 0.1);
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
    DecoderDriver driver = Driver(config, weights, dtype);
    DecoderDriver::Sequence first{.tokens = RandomTokens(40, config.vocab_size, 8)};
    const int64_t chunk = 27;
    DecoderDriver::Sequence* one = &first;
    driver.Advance({&one, 1}, {&chunk, 1});
    DecoderDriver::Sequence second = first;
    second.blocks.resize(1);
    driver.Reserve(second, 32);
    const BlockCopy copy = {.from = first.blocks[1], .to = second.blocks[1]};
    driver.decoder().CopyBlocks({&copy, 1});
    for (size_t i = 28; i < 40; ++i) second.tokens[i] = first.tokens[67 - i];
    const int64_t rest = 13;
    for (DecoderDriver::Sequence* sequence : {&second, &first}) {
      driver.Advance({&sequence, 1}, {&rest, 1});
      DecoderDriver alone = Driver(config, weights, dtype);
      EXPECT_LT(LargestDifference(sequence->logprobs, alone.Score(sequence->tokens, {40})),
                dtype == Dtype::kF32 ? 1e-4 : 0.15);
    }
  }
}

TEST_F(CudaDecoderTest, CountsTheExpertsThatAPassSelects) {
  const ModelConfig config = TinyModel(Architecture::kQwen3Moe);
  ASSERT_TRUE(config.moe.has_value());
  const MoeConfig& moe = *config.moe;
  int64_t num_sparse = 0;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    if (config.IsSparse(layer)) ++num_sparse;
  }
  auto decoder =
      std::move(CreateDecoder(DeviceKind::kCuda, config, {.dtype = Dtype::kBF16, .num_blocks = 64}))
          .value();
  decoder->Install(*decoder->Prepare(RandomWeights(config, 3, 0.3)));
  std::vector<std::vector<BlockId>> blocks;
  Pass same;
  Pass different;
  for (int64_t row = 0; row < 24; ++row) blocks.push_back({static_cast<BlockId>(row)});
  for (int64_t row = 0; row < 24; ++row) {
    for (Pass* const pass : {&same, &different}) {
      pass->chunks.push_back(
          {.start = 0, .num_tokens = 1, .blocks = blocks[static_cast<size_t>(row)]});
      pass->samples.push_back({.row = row, .options = {}, .key = {}});
    }
    same.tokens.push_back(1);
    different.tokens.push_back(static_cast<TokenId>(row));
  }
  // Equal rows select the same experts.
  ASSERT_TRUE(decoder->Run(same).ok());
  EXPECT_EQ(CountCudaExperts(*decoder, same).value(), num_sparse * moe.num_experts_per_token);
  const int64_t selected = CountCudaExperts(*decoder, different).value();
  EXPECT_GT(selected, num_sparse * moe.num_experts_per_token);
  EXPECT_LE(selected, num_sparse * moe.num_experts);
}

TEST_F(CudaDecoderTest, PreparesBesideARun) {
  const ModelConfig config = TinyModel(Architecture::kQwen3Moe);
  const WeightSet weights = RandomWeights(config, 12, 0.2);
  DecoderDriver driver = Driver(config, weights, Dtype::kBF16);
  const std::vector<TokenId> tokens = RandomTokens(30, config.vocab_size, 6);
  const std::vector<float> expected = driver.Score(tokens, {1});
  std::shared_ptr<const DecoderWeights> prepared;
  std::thread trainer([&] {
    for (int i = 0; i < 5; ++i) prepared = driver.decoder().Prepare(weights).value();
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(driver.Score(tokens, {1}), expected);
  trainer.join();
  driver.decoder().Install(prepared);
  EXPECT_EQ(driver.Score(tokens, {1}), expected);
}

TEST_F(CudaDecoderTest, RefusesWhatItCannotCompute) {
  ModelConfig config = TinyModel(Architecture::kLlama);
  EXPECT_FALSE(CreateCudaDecoder(config, {.num_blocks = 0}).ok());
  EXPECT_FALSE(CreateCudaDecoder(config, {.dtype = Dtype::kF16, .num_blocks = 1}).ok());
  config.head_dim = 256;
  EXPECT_FALSE(CreateCudaDecoder(config, {.num_blocks = 1}).ok());
}

}  // namespace
}  // namespace pace
