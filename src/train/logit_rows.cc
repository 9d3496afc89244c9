#include "train/logit_rows.h"

#include <cmath>

#include "model/cpu/gradient/training_kernels.h"
#include "model/cpu/kernels/isa.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/packed_matrix.h"
#include "model/cuda/train/training_functions.h"
#include "model/torch/row_functions.h"

namespace pace {
namespace {

// Probabilities are needed in float32 at least.
at::Tensor Wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

bool HasRowKernels(const at::Tensor& logits) {
  return logits.device().is_cpu() && logits.scalar_type() == at::kFloat && logits.stride(1) == 1;
}

void ComposedScores(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                    const LogitScores& scores) {
  const at::Tensor scaled = logits / temperature;
  const at::Tensor normaliser = at::logsumexp(scaled, 1);
  scores.log_sums.copy_(normaliser);
  scores.logprobs.copy_(scaled.gather(1, targets.unsqueeze(1)).squeeze(1) - normaliser);
  // H = log Z - sum p logit
  const at::Tensor shares = at::exp(scaled - normaliser.unsqueeze(1));
  scores.entropies.copy_(normaliser - (shares * scaled).sum(1));
}

// d logprob = onehot - p; d entropy = -p (log p + H)
at::Tensor ComposedGradients(const at::Tensor& logits, const at::Tensor& targets,
                             double temperature, const LogitScores& scores,
                             const at::Tensor& of_logprob, const at::Tensor& of_entropy) {
  const auto column = [](const at::Tensor& x) { return x.unsqueeze(1); };
  at::Tensor log_shares = (logits / temperature).sub_(column(scores.log_sums));
  at::Tensor d_logits = at::exp(log_shares);
  if (of_entropy.defined()) {
    log_shares.add_(column(scores.entropies)).mul_(column(of_entropy)).add_(column(of_logprob));
    d_logits.mul_(log_shares);
  } else {
    d_logits.mul_(column(of_logprob));
  }
  d_logits.neg_();
  d_logits.scatter_add_(1, column(targets), column(of_logprob));
  return d_logits.div_(temperature);
}

float ToElement(float x, float /*as*/) {
  return x;
}
uint16_t ToElement(float x, uint16_t /*as*/) {
  uint16_t bits = 0;
  KernelsOf(BestIsa()).to_bf16(&x, 1, &bits);
  return bits;
}

}  // namespace

LogitProduct::LogitProduct(const at::Tensor& hidden_NH, const at::Tensor& head_VH) {
  const bool in_tiles = hidden_NH.device().is_cpu() && HasBf16Products(BestIsa()) &&
                        hidden_NH.scalar_type() == at::kBFloat16;
  const bool in_halves = in_tiles || HasCudaProducts(hidden_NH);
  hidden_NH_ = in_halves ? hidden_NH.contiguous() : Wide(hidden_NH);
  head_VH_ = in_halves ? head_VH.to(at::kBFloat16).contiguous() : Wide(head_VH);
  if (!in_tiles) return;
  const int64_t depth = RoundUp(head_VH.size(1), kDepthStep);
  num_columns_ = RoundUp(head_VH.size(0), kPanelWidth);
  panels_ = at::empty({num_columns_, depth}, head_VH_.options());
  TrainingKernelsOf(BestIsa()).bf16.pack_outputs(DataOf<uint16_t>(head_VH_), head_VH.size(1),
                                                 head_VH.size(0), head_VH.size(1),
                                                 DataOf<uint16_t>(panels_));
  // Tiles read sixteen rows at a time, and whole steps of the depth.
  const int64_t num_rows = RoundUp(hidden_NH.size(0), kLanes);
  padded_ = hidden_NH_;
  if (num_rows != hidden_NH.size(0) || depth != hidden_NH.size(1)) {
    padded_ = at::zeros({num_rows, depth}, hidden_NH_.options());
    padded_.narrow(0, 0, hidden_NH.size(0)).narrow(1, 0, hidden_NH.size(1)).copy_(hidden_NH_);
  }
}

at::Tensor LogitProduct::Logits(int64_t begin, int64_t count) const {
  if (HasCudaProducts(hidden_NH_)) return at::mm(Hidden(begin, count), head_VH_.t(), at::kFloat);
  if (!panels_.defined()) return at::mm(Hidden(begin, count), head_VH_.t());
  const at::Tensor logits = at::empty({count, num_columns_}, head_VH_.options().dtype(at::kFloat));
  KernelsOf(BestIsa()).gemm_bf16({.x = DataOf<uint16_t>(padded_) + begin * padded_.size(1),
                                  .x_stride = padded_.size(1),
                                  .num_rows = count,
                                  .panels = DataOf<uint16_t>(panels_),
                                  .num_panels = num_columns_ / kPanelWidth,
                                  .depth = padded_.size(1),
                                  .out = DataOf<float>(logits),
                                  .out_stride = num_columns_});
  return logits.narrow(1, 0, head_VH_.size(0));
}

void ScoreLogits(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                 const LogitScores& scores) {
  if (HasCudaLogits(logits)) {
    return CudaScoreLogits(logits, targets, temperature, scores.logprobs, scores.log_sums,
                           scores.entropies);
  }
  if (!HasRowKernels(logits)) return ComposedScores(logits, targets, temperature, scores);
  const Kernels& kernels = KernelsOf(BestIsa());
  const TrainingKernels& training = TrainingKernelsOf(BestIsa());
  const auto scale = static_cast<float>(1 / temperature);
  const int64_t n = logits.size(1);
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const float* const x = logits.data_ptr<float>() + row * logits.stride(0);
    const float highest = kernels.max_of(x, n);
    const TrainingKernels::Moments moments = training.exp_moments(x, n, highest, scale);
    const float log_sum = highest * scale + std::log(moments.sum);
    const float target = x[DataOf<int64_t>(targets)[row]];
    DataOf<float>(scores.log_sums)[row] = log_sum;
    DataOf<float>(scores.logprobs)[row] = target * scale - log_sum;
    DataOf<float>(scores.entropies)[row] = log_sum - scale * moments.weighted / moments.sum;
  }
}

at::Tensor LogitGradients(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                          const LogitScores& scores, const at::Tensor& of_logprob,
                          const at::Tensor& of_entropy, at::ScalarType dtype) {
  if (HasCudaLogits(logits)) {
    return CudaLogitGradients(logits, targets, temperature, scores.log_sums, scores.entropies,
                              of_logprob, of_entropy, dtype);
  }
  if (!HasRowKernels(logits)) {
    return ComposedGradients(logits, targets, temperature, scores, of_logprob, of_entropy)
        .to(dtype);
  }
  const at::Tensor d_logits = dtype == at::kFloat && logits.is_contiguous()
                                  ? logits
                                  : at::empty(logits.sizes(), logits.options().dtype(dtype));
  const auto scale = static_cast<float>(1 / temperature);
  const int64_t n = logits.size(1);
  WithElements(d_logits, [&](auto zero) {
    using T = decltype(zero);
    const TrainingKernels::Of<T>& kernels = TrainingKernelsOf(BestIsa()).of<T>();
    for (int64_t row = 0; row < logits.size(0); ++row) {
      const float* const x = logits.data_ptr<float>() + row * logits.stride(0);
      T* const out = DataOf<T>(d_logits) + row * n;
      const int64_t target = DataOf<int64_t>(targets)[row];
      const float log_sum = DataOf<float>(scores.log_sums)[row];
      const float g = DataOf<float>(of_logprob)[row];
      const float h = of_entropy.defined() ? DataOf<float>(of_entropy)[row] : 0;
      // -p (g + h (log p + H)) / temperature, log p = scale x - log_sum.
      const float a = -scale * (g + h * (DataOf<float>(scores.entropies)[row] - log_sum));
      const float b = -scale * scale * h;
      const float share = std::exp(scale * x[target] - log_sum);
      const float of_target = share * (a + b * x[target]) + scale * g;
      kernels.logit_gradient(x, n, scale, log_sum, a, b, out);
      out[target] = ToElement(of_target, T{});
    }
  });
  return d_logits;
}

}  // namespace pace
