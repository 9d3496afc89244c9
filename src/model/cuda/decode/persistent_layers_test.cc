// All layers in one kernel against the same layers piece by piece.
#include "model/cuda/decode/persistent_layers.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/cuda/decode/cuda_ops.h"
#include "model/cuda/decode/weight_layout.h"
#include "model/cuda/test_device.h"
#include "model/network.h"
#include "model/tiny_configs.h"

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

// A decode pass of sequences with these contexts, with random weights and cache.
class OnePass {
 public:
  OnePass(const ModelConfig& config, const std::vector<int64_t>& contexts)
      : config_(config),
        layout_(config, Element::kHalf),
        weights_(std::move(DeviceMemory::Allocate(layout_.num_bytes(), "weights")).value()),
        metadata_(NumBlocks(contexts), config.num_heads / config.num_kv_heads) {
    EXPECT_TRUE(layout_.FillRandom(5, 0.03, weights_.at()).ok());
    network_ = layout_.At(weights_.at());
    ops_ = std::move(CudaOps::Create(config_, Element::kHalf, nullptr)).value();
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
    layer_bytes_ = (NumBlocks(contexts) + 1) * config.num_kv_heads * 4 *
                   PageElements(static_cast<int>(config.head_dim));
    cache_ = std::move(DeviceMemory::Allocate(config.num_layers * layer_bytes_, "cache")).value();
  }

  struct Values {
    Floats residual;
    Floats cache;
  };
  // Nothing where the kernel has no such case.
  std::optional<Values> Run(bool in_one_kernel) {
    const auto count = static_cast<size_t>(cache_.num_bytes() / 2);
    cuda::FillRandom(cache_.at(), Element::kHalf, 1, static_cast<int64_t>(count),
                     static_cast<int64_t>(count), 11, 0, 1, nullptr);
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
    std::vector<uint16_t> halves(count);
    EXPECT_EQ(cudaMemcpy(halves.data(), cache_.at(), 2 * count, cudaMemcpyDeviceToHost),
              cudaSuccess);
    values.cache = FromHalves(halves);
    return values;
  }

 private:
  static BlockId NumBlocks(const std::vector<int64_t>& contexts) {
    int64_t count = 0;
    for (const int64_t context : contexts) count += (context + kPageTokens - 1) / kPageTokens;
    return static_cast<BlockId>(count);
  }

  const ModelConfig config_;
  const WeightLayout layout_;
  DeviceMemory weights_;
  NetworkWeights<CudaOps> network_;
  BatchMetadata metadata_;
  std::unique_ptr<CudaOps> ops_;
  std::vector<std::vector<BlockId>> blocks_;
  int64_t layer_bytes_ = 0;
  DeviceMemory cache_;
};

TEST_F(CudaKernelsTest, AllLayersInOneKernelEqualTheirPieces) {
  const std::vector<Shape> shapes = {{2560, 9728, 32, 8, 128},
                                     {1024, 3072, 16, 8, 128},
                                     {576, 1536, 9, 3, 64, /*qk_norm=*/false, /*biases=*/true},
                                     {320, 704, 16, 2, 128},
                                     {64, 64, 1, 1, 64, /*qk_norm=*/false},
                                     {896, 4864, 14, 2, 64, /*qk_norm=*/true, /*biases=*/true}};
  for (const Shape& shape : shapes) {
    const ModelConfig config = ConfigOf(shape);
    for (const std::vector<int64_t>& contexts :
         {std::vector<int64_t>{1}, {15}, {16}, {17}, {512}, {4100}, {512, 31}, {1, 4100}}) {
      OnePass pass(config, contexts);
      const auto pieces = pass.Run(false);
      const auto whole = pass.Run(true);
      ASSERT_TRUE(whole) << shape.hidden;
      // The kernel rounds inputs of products to bf16 before the norm's factor, the pieces round
      // after it, so neither is nearer to exact arithmetic. On an H200 they differ by up
      // to 1.23e-2.
      EXPECT_LT(Distance(whole->residual, pieces->residual), 2e-2)
          << shape.hidden << ", context " << contexts[0];
      EXPECT_LT(Distance(whole->cache, pieces->cache), 5e-3)
          << shape.hidden << ", context " << contexts[0];
      // A pass leaves values of its own behind; the same pass gives the same bits.
      EXPECT_EQ(pass.Run(true)->residual, whole->residual);
    }
  }
}

TEST_F(CudaKernelsTest, OtherPassesRunPieceByPiece) {
  EXPECT_FALSE(OnePass(ConfigOf({1024, 3072, 16, 8, 128}), {5, 6, 7}).Run(true));
  EXPECT_FALSE(OnePass(ConfigOf({1024, 3072, 32, 16, 32}), {5}).Run(true));
  EXPECT_FALSE(OnePass(ConfigOf({1000, 3072, 16, 8, 128}), {5}).Run(true));
}

}  // namespace
}  // namespace pace::cuda
