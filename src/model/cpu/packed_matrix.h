// PackedMatrix: weights [outputs, inputs] in the panels that kernels.h describes.
// Thread-safety: immutable once packed.
#ifndef PACE_MODEL_CPU_PACKED_MATRIX_H_
#define PACE_MODEL_CPU_PACKED_MATRIX_H_

#include <cstdint>
#include <functional>

#include "core/status.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/kernels/kernels.h"

namespace pace {

constexpr int64_t RoundUp(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

struct PackedMatrix {
  // Where the weights come from: writes row `output` (num_inputs floats), and
  // its bias.
  struct Source {
    int64_t num_outputs = 0;
    int64_t num_inputs = 0;
    bool has_bias = false;
    std::function<void(int64_t output, float* row)> read_row;
    std::function<float(int64_t output)> read_bias;
  };

  int64_t num_outputs = 0;  // of a gated matrix: gates and ups
  int64_t num_inputs = 0;
  int64_t num_panels = 0;
  int64_t depth = 0;  // num_inputs; for bf16 rounded up to kDepthStep
  bool is_bf16 = false;
  AlignedBuffer panels;
  AlignedBuffer bias;  // num_panels * kPanelWidth floats, or empty

  int64_t panel_bytes() const { return depth * kPanelWidth * (is_bf16 ? 2 : 4); }
  const float* bias_of(int64_t panel) const {
    return bias.num_bytes() > 0 ? bias.As<float>() + panel * kPanelWidth : nullptr;
  }
};

// Outputs in their order.
Result<PackedMatrix> Pack(const Kernels& kernels, const PackedMatrix::Source& source, bool as_bf16);
// Outputs [0, n/2) are gates, [n/2, n) the ups that belong to them.
Result<PackedMatrix> PackGated(const Kernels& kernels, const PackedMatrix::Source& source,
                               bool as_bf16);

}  // namespace pace

#endif  // PACE_MODEL_CPU_PACKED_MATRIX_H_
