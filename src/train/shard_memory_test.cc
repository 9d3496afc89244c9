// What one rank of several keeps, counted by LibTorch's allocator: no clock, no pages, the same in
// every run. The rank is alone, but it holds what it would hold among others.
#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <memory>

#include "model/tiny_configs.h"
#include "train/small_trainer.h"
#include "train/torch_trainer.h"

namespace pace {
namespace {

// Bytes of tensors that this thread made and that are still there.
class LiveMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*data*/, int64_t size, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device /*device*/) override {
    bytes_ += size;
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// A communicator of rank 0 whose other ranks contribute zeros. Records the live memory (weights,
// moments and gradients) when the norm of the summed gradient is computed.
class LonelyRank final : public Communicator {
 public:
  LonelyRank(int64_t size, const LiveMemory& memory) : size_(size), memory_(memory) {}
  int64_t rank() const override { return 0; }
  int64_t size() const override { return size_; }
  int64_t bytes() const { return bytes_; }

 protected:
  Status Sum(const at::Tensor& tensor) override {
    if (tensor.scalar_type() == at::kDouble && tensor.numel() == 1) bytes_ = memory_.bytes();
    return Status::Ok();
  }
  Status SumParts(const at::Tensor& all, const at::Tensor& own) override {
    own.copy_(all.narrow(0, 0, own.numel()));
    return Status::Ok();
  }
  Status Collect(const at::Tensor& own, const at::Tensor& all) override {
    all.view({size_, -1}).copy_(own);
    return Status::Ok();
  }
  Status Send(const at::Tensor& /*tensor*/, int64_t /*root*/, Patience /*patience*/) override {
    return Status::Ok();
  }

 private:
  const int64_t size_;
  const LiveMemory& memory_;
  int64_t bytes_ = 0;
};

ModelConfig MemoryConfig(Architecture architecture) {
  ModelConfig config = TinyModel(architecture);
  config.vocab_size = 2048;
  config.hidden_size = 64;
  config.intermediate_size = 256;
  return config;
}

struct Held {
  double bytes = 0;       // weights, moments and gradients of this rank
  double parameters = 0;  // of the network
};

Held HeldBy(Architecture architecture, ShardMode mode, int64_t num_ranks) {
  at::set_num_threads(1);
  const auto memory = std::make_shared<LiveMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  const ModelConfig config = MemoryConfig(architecture);
  LonelyRank ranks(num_ranks, *memory);
  TrainerOptions options = Plain();
  options.shard = mode;
  const std::unique_ptr<TorchTrainer> trainer =
      TorchTrainer::Create(
          TrainingNetwork::Create(config, RandomWeights(config, 3, 0.1), {}).value(), options,
          std::nullopt, &ranks)
          .value();
  const Result<MetricList> step = trainer->Step(Sequences(config, 2));
  EXPECT_TRUE(step.ok()) << step.status().message();
  return {.bytes = static_cast<double>(ranks.bytes()),
          .parameters = static_cast<double>(config.num_parameters())};
}

// A float32 each: master weight, two moments, gradient.
constexpr double kBytesPerParameter = 16;
constexpr double kAllowance = 0.02;

TEST(ShardMemoryTest, FullKeepsOnePartOfEverything) {
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kQwen3Moe}) {
    for (const int64_t num_ranks : {2, 3, 4, 8}) {
      const Held held = HeldBy(architecture, ShardMode::kFull, num_ranks);
      const double share = held.bytes / (kBytesPerParameter * held.parameters);
      EXPECT_LE(share, 1.0 / static_cast<double>(num_ranks) + kAllowance) << num_ranks;
      EXPECT_GE(share, 1.0 / static_cast<double>(num_ranks)) << num_ranks;
    }
  }
}

TEST(ShardMemoryTest, GradientsKeepsOnePartBesideTheWholeWeights) {
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kQwen3Moe}) {
    for (const int64_t num_ranks : {2, 3, 4, 8}) {
      const Held held = HeldBy(architecture, ShardMode::kGradients, num_ranks);
      // The rank's master weights are its part of the weights.
      const double weights = 4 * held.parameters;
      const double part = weights / static_cast<double>(num_ranks);
      const double share = (held.bytes - weights + part) / (kBytesPerParameter * held.parameters);
      EXPECT_LE(share, 1.0 / static_cast<double>(num_ranks) + kAllowance) << num_ranks;
      EXPECT_GE(share, 1.0 / static_cast<double>(num_ranks)) << num_ranks;
    }
  }
}

}  // namespace
}  // namespace pace
