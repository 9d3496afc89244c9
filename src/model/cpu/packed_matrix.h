// PackedMatrix and Activations: weights [outputs, inputs] in the panels that kernels.h describes,
// and the rows that they multiply. Thread-safety: a packed matrix is immutable; activations are as
// a plain array.
#ifndef PACE_MODEL_CPU_PACKED_MATRIX_H_
#define PACE_MODEL_CPU_PACKED_MATRIX_H_

#include <cstdint>
#include <functional>

#include "core/status.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/kernels/kernels.h"

namespace pace {

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

// Rows of floats or bf16 values in memory that passes use again.
//
// Columns after the width, up to the next multiple of kPanelWidth, are 0 and
// stay 0: kernels read and write whole panels.
class Activations {
 public:
  Activations() = default;
  Activations(int64_t width, bool is_bf16) : width_(width), is_bf16_(is_bf16) {
    // An odd number of cache lines: rows then lie at different places of a cache.
    const int64_t per_line = 64 / element_bytes();
    stride_ = RoundUp(width, kPanelWidth);
    if (stride_ / per_line % 2 == 0) stride_ += per_line;
  }

  // Room for at least this many rows. Growing loses what was there.
  void Reserve(int64_t num_rows) {
    if (num_rows <= capacity_) return;
    // Growing by halves keeps growth rare. Products of bf16 read rows in sixteens from any row
    // on (experts begin at their first slot), so as many rows follow the last.
    capacity_ = RoundUp(num_rows + capacity_ / 2, kReadAtOnce);
    buffer_ = AlignedBuffer();
    buffer_ = AlignedBuffer::Allocate((capacity_ + kReadAtOnce) * row_bytes()).value();
  }

  int64_t width() const { return width_; }
  int64_t stride() const { return stride_; }  // elements
  bool is_bf16() const { return is_bf16_; }
  int64_t element_bytes() const { return is_bf16_ ? 2 : 4; }
  void* data() { return buffer_.As<void>(); }
  const void* data() const { return buffer_.As<void>(); }
  // REQUIRES: of this element type
  float* floats(int64_t row) { return buffer_.As<float>() + row * stride_; }
  const float* floats(int64_t row) const { return buffer_.As<float>() + row * stride_; }
  uint16_t* halves(int64_t row) { return buffer_.As<uint16_t>() + row * stride_; }
  const uint16_t* halves(int64_t row) const { return buffer_.As<uint16_t>() + row * stride_; }
  int64_t row_bytes() const { return stride_ * element_bytes(); }
  char* bytes(int64_t row) { return buffer_.As<char>() + row * row_bytes(); }
  const char* bytes(int64_t row) const { return buffer_.As<char>() + row * row_bytes(); }

 private:
  static constexpr int64_t kReadAtOnce = 16;

  int64_t width_ = 0;
  int64_t stride_ = 0;
  int64_t capacity_ = 0;
  bool is_bf16_ = false;
  AlignedBuffer buffer_;
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_PACKED_MATRIX_H_
