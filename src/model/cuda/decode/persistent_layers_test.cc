// All layers in one kernel, and the same layers piece by piece, against float32.
#include "model/cuda/decode/persistent_layers.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/cuda/decode/cuda_ops.h"
#include "model/cuda/decode/weight_layout.h"
#include "model/cuda/test_device.h"
#include "model/network.h"
#include "model/tiny_configs.h"
#include "model/weight_set.h"

namespace pace::cuda {
namespace {

struct Shape {
  int64_t hidden, intermediate, heads, kv_heads, head_dim;
  bool qk_norm = true;
  bool biases = false;
};

ModelConfig ConfigOf(const Shape& shape) {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.hidden_size = shape.hidden;
  config.intermediate_size = shape.intermediate;
  config.num_heads = shape.heads;
  config.num_kv_heads = shape.kv_heads;
  config.head_dim = shape.head_dim;
  config.num_layers = 3;
  config.max_positions = 8192;
  config.qk_norm = shape.qk_norm;
  config.qkv_bias = config.output_bias = config.mlp_bias = shape.biases;
  return config;
}

// A decode pass of sequences with these contexts, over a random cache. The values of the cache are
// those of bf16 for every element type.
class OnePass {
 public:
  OnePass(const ModelConfig& config, const WeightSet& weights, Element element,
          const std::vector<int64_t>& contexts, Quantization quantization = Quantization::kNone)
      : config_(config),
        element_(element),
        layout_(config, element, quantization),
        weights_(std::move(DeviceMemory::Allocate(layout_.num_bytes(), "weights")).value()),
        metadata_(NumBlocks(contexts), config.num_heads / config.num_kv_heads) {
    EXPECT_TRUE(layout_.Upload(weights, weights_.at()).ok());
    network_ = layout_.At(weights_.at());
    ops_ = std::move(CudaOps::Create(config_, element, nullptr)).value();
    BlockId next = 0;
    for (const int64_t context : contexts) {
      blocks_.emplace_back();
      for (int64_t i = 0; i * kPageTokens < context; ++i) blocks_.back().push_back(next++);
    }
    Pass pass;
    for (size_t i = 0; i < contexts.size(); ++i) {
      pass.tokens.push_back(static_cast<TokenId>(7 + i));
      pass.chunks.push_back({.start = contexts[i] - 1, .num_tokens = 1, .blocks = blocks_[i]});
      pass.samples.push_back({.row = static_cast<int64_t>(i), .options = {}, .key = {}});
    }
    EXPECT_TRUE(metadata_.Build(pass, std::ssize(contexts), {}, 0).ok());
    EXPECT_TRUE(metadata_.Upload(nullptr).ok());
    EXPECT_TRUE(ops_->Reserve(std::ssize(contexts), std::ssize(contexts)).ok());
    layer_bytes_ = (NumBlocks(contexts) + 1) * config.num_kv_heads * 2 * BytesOf(element) *
                   PageElements(PaddedHeadDim(static_cast<int>(config.head_dim)));
    cache_ = std::move(DeviceMemory::Allocate(config.num_layers * layer_bytes_, "cache")).value();
  }

  struct Values {
    Floats residual;
    Floats cache;
  };
  // Nothing where the kernel has no such case.
  std::optional<Values> Run(bool in_one_kernel) {
    const auto count = static_cast<size_t>(cache_.num_bytes() / BytesOf(element_));
    Write(CacheValues(count));
    ops_->Begin(metadata_, cache_.at(), layer_bytes_);
    CudaOps::Rows x = ops_->Embed(network_.embedding);
    if (in_one_kernel) {
      if (!ops_->Layers(network_.layers, x)) return std::nullopt;
    } else {
      for (int64_t i = 0; i < config_.num_layers; ++i) {
        RunLayer(network_.layers[static_cast<size_t>(i)], i, *ops_, x);
      }
    }
    EXPECT_TRUE(ops_->TakeStatus().ok());
    Values values;
    values.residual.resize(static_cast<size_t>(metadata_.shape().num_rows * config_.hidden_size));
    EXPECT_EQ(cudaMemcpy(values.residual.data(), x.at, 4 * values.residual.size(),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    values.cache = Cache(count);
    return values;
  }

 private:
  bool in_halves() const { return element_ == Element::kHalf; }
  template <typename T>
  void Copy(const std::vector<T>& values) {
    EXPECT_EQ(
        cudaMemcpy(cache_.at(), values.data(), sizeof(T) * values.size(), cudaMemcpyHostToDevice),
        cudaSuccess);
  }
  void Write(const Floats& values) { in_halves() ? Copy(Halves(values)) : Copy(values); }
  template <typename T>
  std::vector<T> Read(size_t count) const {
    std::vector<T> values(count);
    EXPECT_EQ(cudaMemcpy(values.data(), cache_.at(), sizeof(T) * count, cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }
  Floats Cache(size_t count) const {
    return in_halves() ? FromHalves(Read<uint16_t>(count)) : Read<float>(count);
  }
  // Random, those of a smaller cache first.
  static Floats CacheValues(size_t count) {
    static Floats values;
    if (values.size() < count) values = Rounded(Random(count, 11));
    return {values.begin(), values.begin() + static_cast<ptrdiff_t>(count)};
  }
  static BlockId NumBlocks(const std::vector<int64_t>& contexts) {
    int64_t count = 0;
    for (const int64_t context : contexts) count += (context + kPageTokens - 1) / kPageTokens;
    return static_cast<BlockId>(count);
  }

  const ModelConfig config_;
  const Element element_;
  const WeightLayout layout_;
  DeviceMemory weights_;
  NetworkWeights<CudaOps> network_;
  BatchMetadata metadata_;
  std::unique_ptr<CudaOps> ops_;
  std::vector<std::vector<BlockId>> blocks_;
  int64_t layer_bytes_ = 0;
  DeviceMemory cache_;
};

OnePass HalfPass(const Shape& shape, const std::vector<int64_t>& contexts) {
  const ModelConfig config = ConfigOf(shape);
  return OnePass(config, RandomWeights(config, 5, 0.03), Element::kHalf, contexts);
}

// The kernel rounds inputs of products to bf16 before the norm's factor, the pieces round after it.
// Neither is nearer to exact arithmetic, so each is held against float32 with the same weights.
// Over all contexts: small networks have few values, so that a single pass says little.
void CompareWithPieces(const Shape& shape, Quantization quantization) {
  SCOPED_TRACE(testing::Message() << "hidden size " << shape.hidden);
  const ModelConfig config = ConfigOf(shape);
  const WeightSet weights = InDtype(config, RandomWeights(config, 5, 0.03), Dtype::kBF16);
  const bool is_rounded = quantization == Quantization::kFloat8;
  const WeightSet rounded = is_rounded ? RoundedToFloat8(config, weights) : weights;
  double of_pieces[2] = {};
  double of_kernel[2] = {};
  for (const std::vector<int64_t>& contexts :
       {std::vector<int64_t>{1}, {15}, {16}, {17}, {512}, {4100}, {512, 31}, {1, 4100}}) {
    const auto exact = OnePass(config, rounded, Element::kFloat, contexts).Run(false);
    const auto pieces = OnePass(config, rounded, Element::kHalf, contexts).Run(false);
    OnePass pass(config, weights, Element::kHalf, contexts, quantization);
    const auto whole = pass.Run(true);
    ASSERT_TRUE(whole);
    of_pieces[0] += Distance(pieces->residual, exact->residual);
    of_kernel[0] += Distance(whole->residual, exact->residual);
    of_pieces[1] += Distance(pieces->cache, exact->cache);
    of_kernel[1] += Distance(whole->cache, exact->cache);
    EXPECT_LT(Distance(whole->residual, exact->residual),
              2 * Distance(pieces->residual, exact->residual))
        << "context " << contexts[0];
    // A pass leaves values of its own behind; the same pass gives the same bits.
    EXPECT_EQ(pass.Run(true)->residual, whole->residual);
  }
  EXPECT_LT(of_kernel[0], 1.5 * of_pieces[0]);
  EXPECT_LT(of_kernel[1], 1.5 * of_pieces[1]);
}

std::vector<Shape> SmallShapes() {
  return {{576, 1536, 9, 3, 64, /*qk_norm=*/false, /*biases=*/true},
          {320, 704, 16, 2, 128},
          {64, 64, 1, 1, 64, /*qk_norm=*/false}};
}
std::vector<Shape> LargeShapes() {
  return {{2560, 9728, 32, 8, 128},
          {1024, 3072, 16, 8, 128},
          {896, 4864, 14, 2, 64, /*qk_norm=*/true, /*biases=*/true}};
}

TEST_F(CudaKernelsTest, AllLayersInOneKernelAreAsExactAsTheirPieces) {
  for (const Shape& shape : SmallShapes()) CompareWithPieces(shape, Quantization::kNone);
}

TEST_F(CudaKernelsTest, AllLayersInOneKernelReadEightBits) {
  for (const Shape& shape : SmallShapes()) CompareWithPieces(shape, Quantization::kFloat8);
}

TEST_F(CudaKernelsTest, AllLargeLayersInOneKernelAreAsExactAsTheirPieces) {
  for (const Shape& shape : LargeShapes()) CompareWithPieces(shape, Quantization::kNone);
}

TEST_F(CudaKernelsTest, AllLargeLayersInOneKernelReadEightBits) {
  for (const Shape& shape : LargeShapes()) CompareWithPieces(shape, Quantization::kFloat8);
}

TEST_F(CudaKernelsTest, OtherPassesRunPieceByPiece) {
  EXPECT_FALSE(HalfPass({1024, 3072, 16, 8, 128}, {5, 6, 7}).Run(true));
  EXPECT_FALSE(HalfPass({1024, 3072, 32, 16, 32}, {5}).Run(true));
  EXPECT_FALSE(HalfPass({1000, 3072, 16, 8, 128}, {5}).Run(true));
}

}  // namespace
}  // namespace pace::cuda
