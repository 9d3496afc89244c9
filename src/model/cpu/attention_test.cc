#include "model/cpu/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "formats/float_encoding.h"
#include "model/cpu/kernels/isa.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/random_floats.h"

namespace pace {
namespace {

struct Heads {
  int64_t num_heads = 1;
  int64_t num_kv_heads = 1;
  int64_t head_dim = 2;
};

ModelConfig ConfigOf(const Heads& heads) {
  ModelConfig config;
  config.num_layers = 2;
  config.num_heads = heads.num_heads;
  config.num_kv_heads = heads.num_kv_heads;
  config.head_dim = heads.head_dim;
  return config;
}

struct Level {
  Isa isa = Isa::kPortable;
  bool is_bf16 = false;
};

// One sequence, whose queries, keys and values are random and fixed.
class Sequence {
 public:
  Sequence(const Heads& heads, int64_t num_tokens, uint64_t seed)
      : heads_(heads), num_tokens_(num_tokens) {
    qkv_ = RandomFloats(num_tokens * width(), seed);
  }

  int64_t width() const { return (heads_.num_heads + 2 * heads_.num_kv_heads) * heads_.head_dim; }
  int64_t out_width() const { return heads_.num_heads * heads_.head_dim; }
  const float* row(int64_t token) const { return qkv_.data() + token * width(); }

  // Blocks in an order that is not theirs, so that tables matter.
  std::vector<BlockId> Blocks(int64_t num_blocks) const {
    std::vector<BlockId> blocks(static_cast<size_t>(num_blocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    for (size_t i = 0; i < blocks.size(); ++i)
      std::swap(blocks[i], blocks[(i * 7 + 3) % blocks.size()]);
    return blocks;
  }

  // The outputs of all tokens, run in chunks of these sizes.
  std::vector<float> Run(const Level& level, int64_t num_threads, std::span<const int64_t> chunks,
                         float before = 0) const {
    const Kernels& kernels = KernelsOf(level.isa);
    ThreadPool threads(num_threads);
    const int64_t num_blocks = (num_tokens_ + kBlockTokens - 1) / kBlockTokens + 2;
    const Dtype dtype = level.is_bf16 ? Dtype::kBF16 : Dtype::kF32;
    KvCache cache = KvCache::Create(ConfigOf(heads_), dtype, num_blocks).value();
    const std::vector<BlockId> blocks = Blocks(num_blocks);
    FillCache(cache, blocks, before);
    Attention attention(ConfigOf(heads_), kernels, threads);
    std::vector<float> result;
    int64_t start = 0;
    for (const int64_t num_tokens : chunks) {
      const Chunk chunk{.start = start, .num_tokens = num_tokens, .blocks = blocks};
      attention.Plan({&chunk, 1});
      Activations out(out_width(), level.is_bf16);
      out.Reserve(num_tokens);
      attention.Run({.index = 1,
                     .qkv = row(start),
                     .qkv_stride = width(),
                     .out = out.data(),
                     .out_stride = out.stride(),
                     .out_is_bf16 = level.is_bf16},
                    cache);
      for (int64_t i = 0; i < num_tokens; ++i) AppendRow(out, i, result);
      start += num_tokens;
    }
    EXPECT_EQ(start, num_tokens_);
    return result;
  }

  // Head `head` of token `position`, in double.
  std::vector<double> Naive(int64_t position, int64_t head, bool is_bf16) const {
    const int64_t kv_head = head / (heads_.num_heads / heads_.num_kv_heads);
    const float* const query = row(position) + head * heads_.head_dim;
    const auto cached = [&](int64_t token, int64_t column) {
      const float value = row(token)[column];
      return static_cast<double>(is_bf16 ? BF16ToFloat(FloatToBF16(value)) : value);
    };
    const int64_t key_at = (heads_.num_heads + kv_head) * heads_.head_dim;
    const int64_t value_at = key_at + heads_.num_kv_heads * heads_.head_dim;
    std::vector<double> scores;
    for (int64_t token = 0; token <= position; ++token) {
      double score = 0;
      for (int64_t d = 0; d < heads_.head_dim; ++d) score += query[d] * cached(token, key_at + d);
      scores.push_back(score / std::sqrt(static_cast<double>(heads_.head_dim)));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    std::vector<double> out(static_cast<size_t>(heads_.head_dim));
    for (int64_t token = 0; token <= position; ++token) {
      for (int64_t d = 0; d < heads_.head_dim; ++d) {
        out[static_cast<size_t>(d)] +=
            scores[static_cast<size_t>(token)] / sum * cached(token, value_at + d);
      }
    }
    return out;
  }

 private:
  // What older owners of the blocks left behind.
  void FillCache(KvCache& cache, const std::vector<BlockId>& blocks, float value) const {
    const std::vector<float> head(static_cast<size_t>(heads_.head_dim), value);
    for (const BlockId block : blocks) {
      for (int64_t slot = 0; slot < kBlockTokens; ++slot) {
        for (int64_t h = 0; h < heads_.num_kv_heads; ++h) {
          cache.Write(KernelsOf(Isa::kPortable), 1, h, block, slot, head.data(), head.data());
        }
      }
    }
  }

  void AppendRow(const Activations& out, int64_t row, std::vector<float>& to) const {
    for (int64_t i = 0; i < out_width(); ++i) {
      to.push_back(out.is_bf16() ? BF16ToFloat(out.halves(row)[i]) : out.floats(row)[i]);
    }
  }

  Heads heads_;
  int64_t num_tokens_;
  std::vector<float> qkv_;
};

const std::vector<Heads> kHeads = {{1, 1, 8},  {6, 2, 64}, {4, 4, 20},
                                   {3, 1, 16}, {14, 1, 6}, {4, 2, 80}};

class AttentionTest : public testing::TestWithParam<Level> {};

std::vector<Level> AllLevels() {
  std::vector<Level> levels;
  for (const Isa isa : IsaLevels()) {
    if (HasBf16Products(isa)) continue;  // its attention is that of the level below
    for (const bool is_bf16 : {false, true}) levels.push_back({isa, is_bf16});
  }
  return levels;
}
std::string NameOf(const testing::TestParamInfo<Level>& info) {
  return std::string(IsaName(info.param.isa)) + (info.param.is_bf16 ? "_bf16" : "_f32");
}
INSTANTIATE_TEST_SUITE_P(Levels, AttentionTest, testing::ValuesIn(AllLevels()), NameOf);

TEST_P(AttentionTest, AgreesWithNaiveAttention) {
  for (const Heads& heads : kHeads) {
    constexpr int64_t kTokens = 75;
    const Sequence sequence(heads, kTokens, 11);
    const std::vector<float> result = sequence.Run(GetParam(), 1, std::vector<int64_t>{kTokens});
    const double tolerance = GetParam().is_bf16 ? 0.01 : 3e-6;
    for (int64_t position = 0; position < kTokens; ++position) {
      for (int64_t head = 0; head < heads.num_heads; ++head) {
        const std::vector<double> expected = sequence.Naive(position, head, GetParam().is_bf16);
        for (int64_t d = 0; d < heads.head_dim; ++d) {
          const int64_t at = position * sequence.out_width() + head * heads.head_dim + d;
          ASSERT_NEAR(result[static_cast<size_t>(at)], expected[static_cast<size_t>(d)], tolerance)
              << "head_dim " << heads.head_dim << ", position " << position << ", head " << head;
        }
      }
    }
  }
}

TEST_P(AttentionTest, RowsDependOnNeitherTheChunksNorTheThreads) {
  for (const Heads& heads : kHeads) {
    const Sequence sequence(heads, 70, 12);
    const std::vector<float> whole = sequence.Run(GetParam(), 1, std::vector<int64_t>{70});
    const std::vector<int64_t> one_by_one(70, 1);
    EXPECT_EQ(BitsOf(sequence.Run(GetParam(), 1, one_by_one)), BitsOf(whole));
    EXPECT_EQ(BitsOf(sequence.Run(GetParam(), 2, std::vector<int64_t>{3, 29, 1, 16, 21})),
              BitsOf(whole));
  }
}

// Whatever an older sequence left in the slots after a row contributes nothing.
TEST_P(AttentionTest, SlotsBehindARowContributeExactlyNothing) {
  for (const float before :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30F}) {
    const Sequence sequence({6, 2, 20}, 37, 13);
    const std::vector<int64_t> chunks = {5, 1, 20, 11};
    EXPECT_EQ(BitsOf(sequence.Run(GetParam(), 1, chunks, before)),
              BitsOf(sequence.Run(GetParam(), 1, chunks)))
        << before;
  }
}

TEST_P(AttentionTest, AgreesWithThePortableLevelToTheBit) {
  for (const Heads& heads : kHeads) {
    const Sequence sequence(heads, 40, 14);
    EXPECT_EQ(
        BitsOf(sequence.Run(GetParam(), 1, std::vector<int64_t>{33, 7})),
        BitsOf(sequence.Run({Isa::kPortable, GetParam().is_bf16}, 1, std::vector<int64_t>{40})));
  }
}

TEST(KvCacheTest, TakesExactlyTheBytesOfItsBlocks) {
  const ModelConfig config = ConfigOf({6, 2, 20});
  // Two layers, two heads, 16 tokens: keys of 20, values padded to 32.
  EXPECT_EQ(BlockBytes(config, Dtype::kF32), 2 * 2 * 16 * (20 + 32) * 4);
  EXPECT_EQ(BlockBytes(config, Dtype::kBF16), BlockBytes(config, Dtype::kF32) / 2);
}

TEST(KvCacheTest, MemoryThatIsNotThereIsAnError) {
  const Result<KvCache> cache =
      KvCache::Create(ConfigOf({6, 2, 64}), Dtype::kF32, int64_t{1} << 45);
  ASSERT_FALSE(cache.ok());
  EXPECT_NE(cache.status().message().find("KV cache"), std::string::npos)
      << cache.status().message();
  EXPECT_FALSE(KvCache::Create(ConfigOf({6, 2, 64}), Dtype::kF32, int64_t{1} << 60).ok());
}

}  // namespace
}  // namespace pace
