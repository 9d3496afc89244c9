// The trainer on a GPU, against the same on the CPU.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "model/cuda/decode/cuda_decoder.h"
#include "train/policy_scores.h"
#include "train/small_trainer.h"

namespace pace {
namespace {

class CudaTrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<CudaDevice> device = FindCudaDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
};

NamedTensors OnCpu(const NamedTensors& tensors) {
  NamedTensors copy;
  for (const auto& [name, tensor] : tensors) {
    copy.emplace(name, tensor.detach().to(at::kCPU, at::kDouble));
  }
  return copy;
}

TEST_F(CudaTrainerTest, StepsAreThoseOfTheCpu) {
  const std::vector<TrainSequence> sequences = Sequences(TinyModel(Architecture::kQwen3), 4);
  TrainerOptions options = Plain();
  options.max_grad_norm = 0.5;
  options.entropy_bonus = 0.01;
  const std::unique_ptr<TorchTrainer> cpu = MakeTrainer(options);
  const std::unique_ptr<TorchTrainer> gpu =
      MakeTrainer(options, {.device = at::kCUDA, .recompute_layers = true});
  const std::unique_ptr<TorchTrainer> bf16 = MakeTrainer(
      options, {.device = at::kCUDA, .compute_in_bf16 = true, .recompute_layers = true});
  for (int step = 0; step < 3; ++step) {
    const Result<MetricList> expected = cpu->Step(sequences);
    const Result<MetricList> found = gpu->Step(sequences);
    const Result<MetricList> rounded = bf16->Step(sequences);
    ASSERT_TRUE(expected.ok() && found.ok() && rounded.ok())
        << found.status().message() << rounded.status().message();
    for (const char* name : {"train/loss", "train/grad_norm", "train/entropy"}) {
      const double value = MetricOf(*expected, name);
      EXPECT_NEAR(MetricOf(*found, name), value, 1e-4 * std::max(1.0, std::abs(value))) << name;
      EXPECT_NEAR(MetricOf(*rounded, name), value, 0.05 * std::max(1.0, std::abs(value))) << name;
    }
    EXPECT_LT(RelativeDifference(OnCpu(GradientOf(*cpu)), OnCpu(GradientOf(*gpu))), 1e-4);
    EXPECT_LT(RelativeDifference(OnCpu(GradientOf(*cpu)), OnCpu(GradientOf(*bf16))), 0.1);
  }
}

TEST_F(CudaTrainerTest, LogProbsOfWideVocabulariesAreThoseOfTheCpu) {
  for (const int64_t vocabulary : {5, 1023, 151'936}) {
    const int64_t num_rows = vocabulary > 100'000 ? 4000 : 70;  // several chunks
    const int64_t width = 64;
    const at::Tensor x = at::randn({num_rows, width}, at::kFloat).to(at::kBFloat16);
    const at::Tensor w =
        (at::randn({vocabulary, width}, at::kFloat) * 0.3).to(at::kBFloat16).to(at::kFloat);
    const at::Tensor targets = (at::arange(num_rows, at::kLong) * 7919).remainder(vocabulary);
    const at::Tensor g = at::randn({num_rows}, at::kFloat);
    const auto run = [&](at::Device device) {
      const at::Tensor hidden = x.to(device).detach().clone().set_requires_grad(true);
      const at::Tensor head = w.to(device).detach().clone().set_requires_grad(true);
      const TokenLogProbsResult out = TokenLogProbs(hidden, head, targets.to(device), 0.8);
      torch::autograd::backward({out.logprobs_N, out.entropy_N},
                                {g.to(device), g.flip(0).to(device)});
      return std::vector<at::Tensor>{out.logprobs_N.detach().cpu(), out.entropy_N.detach().cpu(),
                                     hidden.grad().cpu().to(at::kFloat), head.grad().cpu()};
    };
    const std::vector<at::Tensor> cpu = run(at::kCPU);
    const std::vector<at::Tensor> gpu = run(at::kCUDA);
    for (size_t i = 0; i < cpu.size(); ++i) {
      const double scale = std::max(1.0, cpu[i].abs().max().item<double>());
      EXPECT_LT((cpu[i] - gpu[i]).abs().max().item<double>(), (i < 2 ? 1e-4 : 2e-2) * scale)
          << vocabulary << " " << i;
    }
  }
}

}  // namespace
}  // namespace pace
