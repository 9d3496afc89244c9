#include "bench/gpu_train_parts.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>

#include "model/cuda/train/training_functions.h"
#include "model/torch/row_functions.h"
#include "train/adamw.h"
#include "train/token_logprobs.h"

namespace pace {
namespace {

constexpr int kRounds = 5;
constexpr int kRuns = 4;
constexpr int kBusyProducts = 5;  // some milliseconds
constexpr int64_t kGemmSize = 8192;

at::Tensor Random(at::IntArrayRef sizes, at::ScalarType dtype = at::kBFloat16) {
  return at::randn(sizes, at::TensorOptions(at::kCUDA).dtype(dtype));
}

// The device's time of one run, the median. Work before it keeps the device busy while
// the host queues, so that waits for the host do not count.
double SecondsOf(const std::function<void()>& body) {
  body();
  const at::Tensor busy = Random({kGemmSize, kGemmSize});
  CudaStopwatch watch;
  std::vector<double> all;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBusyProducts; ++i) at::mm(busy, busy);
    watch.Start();
    for (int i = 0; i < kRuns; ++i) body();
    all.push_back(watch.Stop() / kRuns);
  }
  std::ranges::sort(all);
  return all[all.size() / 2];
}

class PartsOfAStep {
 public:
  PartsOfAStep(const ModelConfig& config, const PartsBatch& batch, const GpuLimits& limits)
      : config_(config),
        batch_(batch),
        limits_(limits),
        rows_(batch.num_sequences * batch.length) {}

  std::vector<ProfilePart> Measure() {
    MeasureProducts();
    MeasureAttention();
    MeasureRows();
    MeasureLogits();
    MeasureUpdate();
    return std::move(parts_);
  }

 private:
  // A product of m x k and k x n takes 2 m k n operations.
  static double Flops(int64_t m, int64_t k, int64_t n) {
    return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  }
  void Add(const std::string& name, double times, double seconds, double limit) {
    for (ProfilePart& part : parts_) {
      if (part.name != name) continue;
      part.seconds += times * seconds;
      part.limit += times * limit;
      return;
    }
    parts_.push_back({name, times * seconds, times * limit});
  }
  double layers() const { return static_cast<double>(config_.num_layers); }

  // Forward twice, then both gradients, of each matrix of a layer.
  void MeasureProducts() {
    const int64_t h = config_.hidden_size;
    const int64_t heads = config_.num_heads * config_.head_dim;
    const int64_t kv = config_.num_kv_heads * config_.head_dim;
    const int64_t f = config_.intermediate_size;
    struct Shape {
      int64_t inputs, outputs;
    };
    for (const auto& [inputs, outputs] :
         {Shape{h, heads + 2 * kv}, Shape{heads, h}, Shape{h, 2 * f}, Shape{f, h}}) {
      const at::Tensor x = Random({rows_, inputs});
      const at::Tensor w = Random({outputs, inputs});
      const at::Tensor g = Random({rows_, outputs});
      const at::Tensor master = Random({outputs, inputs}, at::kFloat);
      const double limit = Flops(rows_, inputs, outputs) / limits_.flops;
      Add("products, forward (twice)", 2 * layers(), SecondsOf([&] { at::mm(x, w.t()); }), limit);
      Add("products, to activations", layers(), SecondsOf([&] { at::mm(g, w); }), limit);
      Add("products, to weights", layers(), SecondsOf([&] { at::mm(g.t(), x, at::kFloat); }),
          limit);
      const double bytes = 6.0 * static_cast<double>(inputs * outputs);
      Add("weights rounded (twice)", 2 * layers(), SecondsOf([&] { master.to(at::kBFloat16); }),
          bytes / limits_.bytes);
    }
  }

  void MeasureAttention() {
    const int64_t width = (config_.num_heads + 2 * config_.num_kv_heads) * config_.head_dim;
    const std::vector<int64_t> lengths(static_cast<size_t>(batch_.num_sequences), batch_.length);
    const at::Tensor angles = Random({rows_, 1, config_.head_dim / 2}, at::kFloat);
    const auto sequences =
        c10::make_intrusive<CudaSequences>(config_, lengths, at::cos(angles), at::sin(angles));
    const at::Tensor norm = at::ones({config_.head_dim}, angles.options());
    const at::Tensor query_norm = config_.qk_norm ? norm : at::Tensor();
    const at::Tensor key_norm = config_.qk_norm ? norm.clone() : at::Tensor();
    const at::Tensor qkv = Random({rows_, width});
    const at::Tensor g = Random({rows_, config_.num_heads * config_.head_dim});
    // Half of all pairs; scores and values.
    const double pairs = 0.5 * static_cast<double>(rows_ * batch_.length);
    const double flops = 4.0 * pairs * static_cast<double>(config_.num_heads * config_.head_dim);
    const double forward = SecondsOf([&] { CudaAttend(qkv, query_norm, key_norm, sequences); });
    const double both = SecondsOf([&] {
      const at::Tensor x = qkv.detach().set_requires_grad(true);
      torch::autograd::backward({CudaAttend(x, query_norm, key_norm, sequences)}, {g});
    });
    Add("attention and rotary, forward (twice)", 2 * layers(), forward, flops / limits_.flops);
    Add("attention and rotary, backward", layers(), both - forward, 2.5 * flops / limits_.flops);
  }

  void MeasureRows() {
    const int64_t h = config_.hidden_size;
    const int64_t f = config_.intermediate_size;
    const at::Tensor x = Random({rows_, h});
    const at::Tensor weight = at::ones({h}, x.options().dtype(at::kFloat));
    const at::Tensor g = Random({rows_, h});
    const at::Tensor gate_up = Random({rows_, 2 * f});
    const at::Tensor gated = Random({rows_, f});
    const double row_bytes = 2.0 * static_cast<double>(rows_);
    const auto measure = [&](const std::string& name, double times, const auto& forward,
                             const at::Tensor& input, const at::Tensor& gradient, double read,
                             double written) {
      const double one = SecondsOf([&] { forward(input); });
      const double both = SecondsOf([&] {
        const at::Tensor leaf = input.detach().set_requires_grad(true);
        torch::autograd::backward({forward(leaf)}, {gradient});
      });
      Add(name + ", forward (twice)", 2 * times, one, row_bytes * (read + written) / limits_.bytes);
      Add(name + ", backward", times, both - one, row_bytes * (2 * read + written) / limits_.bytes);
    };
    const auto width = static_cast<double>(h);
    const auto ffn = static_cast<double>(f);
    measure(
        "norms", 2 * layers(), [&](const at::Tensor& in) { return RmsNormRows(in, weight, 1e-6); },
        x, g, width, width);
    measure(
        "gates", layers(), [&](const at::Tensor& in) { return GatedRows(in); }, gate_up, gated,
        2 * ffn, ffn);
  }

  void MeasureLogits() {
    const int64_t h = config_.hidden_size;
    const at::Tensor hidden = Random({rows_, h}).set_requires_grad(true);
    const at::Tensor head =
        (Random({config_.vocab_size, h}, at::kFloat) * 0.02).set_requires_grad(true);
    const at::Tensor targets =
        at::randint(config_.vocab_size, {rows_}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
    const at::Tensor g = Random({rows_}, at::kFloat);
    const double seconds = SecondsOf([&] {
      const TokenLogProbsResult out = TokenLogProbs(hidden, head, targets, 1.0);
      torch::autograd::backward({out.logprobs_N}, {g});
      hidden.mutable_grad() = at::Tensor();
      head.mutable_grad() = at::Tensor();
    });
    // Logits twice, and both gradients.
    Add("log-probs and their gradients", 1, seconds,
        4 * Flops(rows_, h, config_.vocab_size) / limits_.flops);
  }

  // Adds gradients up, clips and applies them.
  void MeasureUpdate() {
    const int64_t count = std::min<int64_t>(config_.num_parameters(), int64_t{1} << 28);
    const double times = static_cast<double>(config_.num_parameters()) / static_cast<double>(count);
    at::Tensor parameter = Random({count}, at::kFloat).set_requires_grad(true);
    parameter.mutable_grad() = Random({count}, at::kFloat);
    AdamW optimizer({{"parameter", parameter}}, {});
    const double seconds = SecondsOf([&] {
      ClipGradients({{"parameter", parameter}}, 1.0);
      optimizer.Step(1e-6);
    });
    // Clipping reads twice and writes once; then four are read, three written.
    Add("clipping and AdamW", times, seconds, 40.0 * static_cast<double>(count) / limits_.bytes);
  }

  const ModelConfig& config_;
  const PartsBatch batch_;
  const GpuLimits limits_;
  const int64_t rows_;
  std::vector<ProfilePart> parts_;
};

}  // namespace

double MeasureGpuFlops() {
  const at::NoGradGuard no_grad;
  const at::Tensor a = Random({kGemmSize, kGemmSize});
  const at::Tensor b = Random({kGemmSize, kGemmSize});
  const double size = kGemmSize;
  return 2.0 * size * size * size / SecondsOf([&] { at::mm(a, b.t()); });
}

std::vector<ProfilePart> MeasureStepParts(const ModelConfig& config, const PartsBatch& batch,
                                          const GpuLimits& limits) {
  return PartsOfAStep(config, batch, limits).Measure();
}

}  // namespace pace
