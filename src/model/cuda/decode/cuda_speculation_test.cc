// The decoder on a GPU, where passes begin before they are asked for: whatever the
// caller asks next, every token has the log-probability that its own context gives it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/cpu/decoder_driver.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

constexpr int64_t kBlocksEach = 5;
constexpr int64_t kNumSequences = 24;
constexpr TokenId kEos = 3;

// A sequence, and what the decoder said of the tokens it sampled.
struct Generated {
  int64_t id = 0;
  std::vector<TokenId> tokens;
  int64_t num_cached = 0;
  std::vector<BlockId> blocks;
  std::vector<std::pair<size_t, float>> logprobs;  // of tokens[first]
};

class CudaAheadTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<CudaDevice> device = FindCudaDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    config_ = TinyModel(Architecture::kQwen3);
    config_.vocab_size = 50;
    config_.max_positions = 4096;
    config_.eos = {kEos};
  }

  static void Add(const Generated& one, Pass& pass) {
    pass.tokens.insert(pass.tokens.end(), one.tokens.begin() + one.num_cached, one.tokens.end());
    pass.chunks.push_back({.start = one.num_cached,
                           .num_tokens = std::ssize(one.tokens) - one.num_cached,
                           .blocks = one.blocks});
    pass.samples.push_back(
        {.row = std::ssize(pass.tokens) - 1,
         .options = {.temperature = one.id % 5 == 0 ? 0.0 : 1.0},
         .key = {.seed = 2, .prompt = one.id, .response = 0, .token = std::ssize(one.tokens)}});
  }

  static void Take(const Sampled& sampled, Generated& one) {
    one.num_cached = std::ssize(one.tokens);
    one.logprobs.emplace_back(one.tokens.size(), sampled.logprob);
    one.tokens.push_back(sampled.token);
  }

  void ExpectOwnContext(const Generated& one, const WeightSet& weights) const {
    DecoderDriver cpu(config_, weights, {.num_blocks = kBlocksEach + 1});
    const std::vector<float> expected = cpu.Score(one.tokens, {std::ssize(one.tokens)});
    for (const auto& [i, logprob] : one.logprobs) {
      EXPECT_NEAR(logprob, expected[i - 1], 3e-4) << "sequence " << one.id << ", token " << i;
    }
  }

  std::unique_ptr<Decoder> NewDecoder() const {
    return std::move(CreateCudaDecoder(config_, {.dtype = Dtype::kF32,
                                                 .num_blocks = kNumSequences * kBlocksEach,
                                                 .cache_states = true}))
        .value();
  }

  ModelConfig config_;
};

TEST_F(CudaAheadTest, EveryTokenHasItsOwnContextWhateverIsAskedNext) {
  const WeightSet weights = RandomWeights(config_, 4, 0.3);
  const std::unique_ptr<Decoder> decoder = NewDecoder();
  decoder->Install(decoder->Prepare(weights).value());
  std::mt19937 random(9);
  const auto pick = [&](unsigned n) { return static_cast<int64_t>(random() % n); };
  std::vector<Generated> sequences(kNumSequences);
  int64_t num_begun = 0;
  int64_t num_ended = 0;
  for (int step = 0; step < 400; ++step) {
    const bool is_calm = step % 40 < 20;  // nothing but sequences that go on
    Pass pass;
    std::vector<size_t> asked;
    for (size_t p = 0; p < sequences.size(); ++p) {
      Generated& one = sequences[p];
      if (one.tokens.empty()) {
        if (is_calm || pick(8) != 0) continue;
        one.id = ++num_begun;
        one.tokens = RandomTokens(1 + pick(30), config_.vocab_size, one.id);
        for (int64_t b = 0; b < kBlocksEach; ++b) {
          one.blocks.push_back(static_cast<BlockId>(b * kNumSequences + static_cast<int64_t>(p)));
        }
      }
      if (!is_calm && pick(10) == 0) continue;  // it waits
      if (!is_calm && pick(20) == 0 && one.num_cached > 0)
        one.num_cached -= std::min(pick(3), one.num_cached);
      Add(one, pass);
      asked.push_back(p);
    }
    if (pass.chunks.empty()) continue;
    const PassResult result = decoder->Run(pass).value();
    ASSERT_EQ(result.samples.size(), asked.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      Generated& one = sequences[asked[i]];
      Take(result.samples[i], one);
      const bool is_full = std::ssize(one.tokens) == kBlocksEach * kBlockTokens;
      // Some go on after a stop.
      if (!is_full && (one.tokens.back() != kEos || one.id % 3 == 0)) continue;
      ExpectOwnContext(one, weights);
      one = {};
      ++num_ended;
    }
  }
  EXPECT_GT(num_ended, 20);
  for (const Generated& one : sequences) {
    if (!one.tokens.empty()) ExpectOwnContext(one, weights);
  }
}

TEST_F(CudaAheadTest, ScoresOfKeptStatesComeBetween) {
  const WeightSet weights = RandomWeights(config_, 4, 0.3);
  const std::unique_ptr<Decoder> decoder = NewDecoder();
  decoder->Install(decoder->Prepare(weights).value());
  Generated one{.id = 1,
                .tokens = RandomTokens(20, config_.vocab_size, 1),
                .num_cached = 0,
                .blocks = {4, 2, 7, 1},
                .logprobs = {}};
  const std::vector<TokenId> prompt = one.tokens;
  std::vector<ScoreRequest> scores;
  for (int64_t t = 0; t + 1 < std::ssize(prompt); ++t) {
    scores.push_back({.row = SlotOf(one.blocks, t), .target = prompt[static_cast<size_t>(t + 1)]});
  }
  DecoderDriver cpu(config_, weights, {});
  const std::vector<float> expected = cpu.Score(prompt, {20});
  for (int step = 0; step < 30; ++step) {
    Pass pass;
    Add(one, pass);
    Take(decoder->Run(pass).value().samples[0], one);
    if (step % 3 != 0) continue;
    const std::vector<float> kept = decoder->ScoreCached(scores).value();
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(kept[i], expected[i], 3e-4) << step;
  }
  ExpectOwnContext(one, weights);
}

TEST_F(CudaAheadTest, NewWeightsDropWhatWasBegunUnderOldOnes) {
  const WeightSet old = RandomWeights(config_, 4, 0.3);
  const WeightSet fresh = RandomWeights(config_, 5, 0.3);
  const Generated start{.id = 1,
                        .tokens = RandomTokens(20, config_.vocab_size, 1),
                        .num_cached = 0,
                        .blocks = {4, 2, 7},
                        .logprobs = {}};
  const std::unique_ptr<Decoder> decoder = NewDecoder();
  decoder->Install(decoder->Prepare(old).value());
  Generated one = start;
  for (int i = 0; i < 4; ++i) {
    Pass pass;
    Add(one, pass);
    Take(decoder->Run(pass).value().samples[0], one);
  }
  decoder->Install(decoder->Prepare(fresh).value());
  Pass next;
  Add(one, next);
  const Sampled sampled = decoder->Run(next).value().samples[0];
  // The same without anything begun: all but the last token at once, then the weights.
  const std::unique_ptr<Decoder> other = NewDecoder();
  other->Install(other->Prepare(old).value());
  Pass most;
  most.tokens.assign(one.tokens.begin(), one.tokens.end() - 1);
  most.chunks = {{.start = 0, .num_tokens = std::ssize(most.tokens), .blocks = one.blocks}};
  ASSERT_TRUE(other->Run(most).ok());
  other->Install(other->Prepare(fresh).value());
  const Sampled expected = other->Run(next).value().samples[0];
  EXPECT_EQ(sampled.token, expected.token);
  EXPECT_NEAR(sampled.logprob, expected.logprob, 3e-4);
}

}  // namespace
}  // namespace pace
