#include "model/cuda/train/cuda_attention.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/check.h"

namespace pace {
namespace {

// Rounds up to a multiple of a quarter of the largest power of two within `value`.
int64_t RoundedUp(int64_t value, int64_t least) {
  if (value <= least) return least;
  const auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(value))) / 4;
  return (value + step - 1) / step * step;
}

// The first row of each sequence, then the end of the last one, repeated up to `count` values.
std::vector<int> BeginsOf(const std::vector<int64_t>& lengths, size_t count) {
  std::vector<int> begins = {0};
  for (const int64_t length : lengths) begins.push_back(begins.back() + static_cast<int>(length));
  begins.resize(count, begins.back());
  return begins;
}

}  // namespace

AttentionPlanSize PlanSizeOf(const std::vector<int64_t>& lengths) {
  int64_t num_rows = 0;
  for (const int64_t length : lengths) num_rows += length;
  return {.num_sequences = static_cast<int64_t>(std::bit_ceil(lengths.size())),
          .longest = RoundedUp(*std::ranges::max_element(lengths), 256),
          .num_rows = RoundedUp(num_rows, 1024)};
}

CudaAttention::CudaAttention(const AttentionHeads& heads, const std::vector<int64_t>& lengths,
                             at::Device device)
    : heads_(heads), longest_(*std::ranges::max_element(lengths)), size_(PlanSizeOf(lengths)) {
  begins_ = at::tensor(BeginsOf(lengths, lengths.size() + 1), at::kInt).to(device);
  if (!HasCudnnAttention(heads, size_)) return;
  const auto count = static_cast<size_t>(size_.num_sequences) + 1;
  const at::Tensor rows = at::tensor(BeginsOf(lengths, count), at::kInt);
  std::vector<int> own(lengths.begin(), lengths.end());
  own.resize(count, 0);
  offsets_ = at::stack({rows * (heads.num_heads * heads.head_dim),
                        rows * (heads.num_kv_heads * heads.head_dim), rows * heads.value_stride,
                        rows * heads.num_heads, at::tensor(own, at::kInt)})
                 .to(device);
}

std::vector<at::Tensor> CudaAttention::Forward(const AttentionInputs& inputs) const {
  if (offsets_.defined()) return CudnnForward(heads_, size_, offsets_, inputs);
  const auto [out, log_sums, state, unused, mask] = at::_flash_attention_forward(
      inputs.queries, inputs.keys, inputs.values, begins_, begins_, longest_, longest_,
      /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false);
  return {out, log_sums, state, unused};
}

AttentionInputs CudaAttention::Backward(const AttentionInputs& inputs,
                                        const std::vector<at::Tensor>& kept,
                                        const at::Tensor& gradient) const {
  if (offsets_.defined()) {
    return CudnnBackward(heads_, size_, offsets_, inputs, kept, gradient);
  }
  PACE_CHECK(kept.size() == 4, kept.size(), " tensors");
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      gradient, inputs.queries, inputs.keys, inputs.values, kept[0], kept[1], begins_, begins_,
      longest_, longest_, /*dropout_p=*/0.0, /*is_causal=*/true, kept[2], kept[3]);
  return {dq.contiguous(), dk.contiguous(), dv.contiguous()};
}

}  // namespace pace
