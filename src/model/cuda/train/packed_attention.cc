#include "model/cuda/train/packed_attention.h"

#include <algorithm>

#include "core/check.h"

namespace pace {
namespace {

constexpr size_t kNumKept = 4;

}  // namespace

PackedBounds::PackedBounds(const std::vector<int64_t>& lengths, at::Device device)
    : longest(*std::ranges::max_element(lengths)) {
  std::vector<int> offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + static_cast<int>(length));
  begins = at::tensor(offsets, at::kInt).to(device);
}

std::vector<at::Tensor> PackedForward(const AttentionInputs& inputs, const PackedBounds& bounds) {
  const auto [out, log_sums, state, unused, mask] = at::_flash_attention_forward(
      inputs.queries, inputs.keys, inputs.values, bounds.begins, bounds.begins, bounds.longest,
      bounds.longest, /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false);
  return {out, log_sums, state, unused};
}

AttentionInputs PackedBackward(const AttentionInputs& inputs, const PackedBounds& bounds,
                               const std::vector<at::Tensor>& kept, const at::Tensor& gradient) {
  PACE_CHECK(kept.size() == kNumKept, kept.size(), " tensors");
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      gradient, inputs.queries, inputs.keys, inputs.values, kept[0], kept[1], bounds.begins,
      bounds.begins, bounds.longest, bounds.longest, /*dropout_p=*/0.0, /*is_causal=*/true, kept[2],
      kept[3]);
  return {dq, dk, dv};
}

}  // namespace pace
