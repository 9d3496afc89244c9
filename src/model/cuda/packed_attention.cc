#include "model/cuda/packed_attention.h"

#include <algorithm>
#include <atomic>

#include "core/check.h"

namespace pace {
namespace {

constexpr size_t kSequenceStep = 16;
constexpr int64_t kLengthStep = 512;

std::atomic<AttentionLibrary>& Library() {
  static std::atomic<AttentionLibrary> library = AttentionLibrary::kFlash;
  return library;
}

// How many tensors each keeps tells them apart.
constexpr size_t kFlashKept = 4;
constexpr size_t kCudnnKept = 5;

std::vector<at::Tensor> FlashForward(const AttentionInputs& in, const PackedBounds& bounds) {
  const auto [out, log_sums, state, unused, mask] = at::_flash_attention_forward(
      in.queries, in.keys, in.values, bounds.begins, bounds.begins, bounds.longest, bounds.longest,
      /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false);
  return {out, log_sums, state, unused};
}

AttentionInputs FlashBackward(const AttentionInputs& in, const PackedBounds& bounds,
                              const std::vector<at::Tensor>& kept, const at::Tensor& gradient) {
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      gradient, in.queries, in.keys, in.values, kept[0], kept[1], bounds.begins, bounds.begins,
      bounds.longest, bounds.longest, /*dropout_p=*/0.0, /*is_causal=*/true, kept[2], kept[3]);
  return {dq, dk, dv};
}

std::vector<at::Tensor> CudnnForward(const AttentionInputs& in, const PackedBounds& bounds) {
  const auto result = at::_cudnn_attention_forward(
      in.queries, in.keys, in.values.contiguous(), /*attn_bias=*/std::nullopt,
      bounds.rounded_begins, bounds.rounded_begins, bounds.rounded_longest, bounds.rounded_longest,
      /*compute_log_sumexp=*/true, /*dropout_p=*/0.0, /*is_causal=*/true);
  const at::Tensor& seed = std::get<6>(result);
  const at::Tensor& offset = std::get<7>(result);
  // Autograd keeps no undefined tensors; the fifth tells whose they are.
  const at::Tensor none = at::empty({0}, in.queries.options().dtype(at::kLong));
  return {std::get<0>(result), std::get<1>(result), seed.defined() ? seed : none,
          offset.defined() ? offset : none, none};
}

AttentionInputs CudnnBackward(const AttentionInputs& in, const PackedBounds& bounds,
                              const std::vector<at::Tensor>& kept, const at::Tensor& gradient) {
  const auto [dq, dk, dv] = at::_cudnn_attention_backward(
      gradient, in.queries, in.keys, in.values.contiguous(), kept[0], kept[1], kept[2], kept[3],
      /*attn_bias=*/at::Tensor(), bounds.rounded_begins, bounds.rounded_begins,
      bounds.rounded_longest, bounds.rounded_longest, /*dropout_p=*/0.0, /*is_causal=*/true);
  return {dq, dk, dv};
}

}  // namespace

void UseAttention(AttentionLibrary library) {
  Library() = library;
}

PackedBounds::PackedBounds(const std::vector<int64_t>& lengths, at::Device device)
    : longest(*std::ranges::max_element(lengths)) {
  std::vector<int> places = {0};
  for (const int64_t length : lengths) places.push_back(places.back() + static_cast<int>(length));
  begins = at::tensor(places, at::kInt).to(device);
  const size_t rounded = (lengths.size() + kSequenceStep - 1) / kSequenceStep * kSequenceStep;
  places.resize(rounded + 1, places.back());
  rounded_begins = at::tensor(places, at::kInt).to(device);
  rounded_longest = (longest + kLengthStep - 1) / kLengthStep * kLengthStep;
}

std::vector<at::Tensor> PackedForward(const AttentionInputs& inputs, const PackedBounds& bounds) {
  return Library() == AttentionLibrary::kCudnn ? CudnnForward(inputs, bounds)
                                               : FlashForward(inputs, bounds);
}

AttentionInputs PackedBackward(const AttentionInputs& inputs, const PackedBounds& bounds,
                               const std::vector<at::Tensor>& kept, const at::Tensor& gradient) {
  PACE_CHECK(kept.size() == kFlashKept || kept.size() == kCudnnKept, kept.size(), " tensors");
  return kept.size() == kCudnnKept ? CudnnBackward(inputs, bounds, kept, gradient)
                                   : FlashBackward(inputs, bounds, kept, gradient);
}

}  // namespace pace
