#include "model/cpu/packed_matrix.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace pace {
namespace {

// Which output lies in each column of a panel; none = a column of zeros.
using Columns = std::array<std::optional<int64_t>, kPanelWidth>;

Columns PlainColumns(int64_t panel, int64_t num_outputs) {
  Columns columns;
  for (int64_t i = 0; i < kPanelWidth; ++i) {
    const int64_t output = panel * kPanelWidth + i;
    if (output < num_outputs) columns[static_cast<size_t>(i)] = output;
  }
  return columns;
}

Columns GatedColumns(int64_t panel, int64_t num_outputs) {
  Columns columns;
  const int64_t half = num_outputs / 2;
  for (int64_t i = 0; i < kLanes; ++i) {
    const int64_t gate = panel * kLanes + i;
    if (gate >= half) break;
    columns[static_cast<size_t>(i)] = gate;
    columns[static_cast<size_t>(i + kLanes)] = half + gate;
  }
  return columns;
}

void WriteF32(const std::vector<float>& rows, int64_t depth, float* panel) {
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < kPanelWidth; ++i) {
      panel[k * kPanelWidth + i] = rows[static_cast<size_t>(i * depth + k)];
    }
  }
}

void WriteBf16(const Kernels& kernels, const std::vector<float>& rows, int64_t depth,
               std::vector<uint16_t>& rounded, uint16_t* panel) {
  rounded.resize(rows.size());
  kernels.to_bf16(rows.data(), static_cast<int64_t>(rows.size()), rounded.data());
  for (int64_t k = 0; k < depth; k += 2) {
    for (int64_t i = 0; i < kPanelWidth; ++i) {
      const int64_t half = i / kLanes;
      const int64_t pair = k % kDepthStep / 2;
      uint16_t* const to = panel + (k / kDepthStep * 2 + half) * kDepthStep * kLanes +
                           (pair * kLanes + i % kLanes) * 2;
      const auto from = static_cast<size_t>(i * depth + k);
      to[0] = rounded[from];
      to[1] = rounded[from + 1];
    }
  }
}

template <typename ColumnsOf>
Result<PackedMatrix> PackPanels(const Kernels& kernels, const PackedMatrix::Source& source,
                                bool as_bf16, int64_t num_panels, const ColumnsOf& columns_of) {
  PackedMatrix matrix;
  matrix.num_outputs = source.num_outputs;
  matrix.num_inputs = source.num_inputs;
  matrix.num_panels = num_panels;
  matrix.depth = as_bf16 ? RoundUp(source.num_inputs, kDepthStep) : source.num_inputs;
  matrix.is_bf16 = as_bf16;
  PACE_ASSIGN_OR_RETURN(matrix.panels, AlignedBuffer::Allocate(num_panels * matrix.panel_bytes()));
  if (source.has_bias) {
    PACE_ASSIGN_OR_RETURN(matrix.bias, AlignedBuffer::Allocate(num_panels * kPanelWidth * 4));
  }
  std::vector<float> rows(static_cast<size_t>(kPanelWidth * matrix.depth));
  std::vector<uint16_t> rounded;
  for (int64_t panel = 0; panel < num_panels; ++panel) {
    const Columns columns = columns_of(panel, source.num_outputs);
    std::fill(rows.begin(), rows.end(), 0.0F);
    for (int64_t i = 0; i < kPanelWidth; ++i) {
      const std::optional<int64_t> output = columns[static_cast<size_t>(i)];
      if (!output) continue;
      source.read_row(*output, rows.data() + i * matrix.depth);
      if (source.has_bias) {
        matrix.bias.As<float>()[panel * kPanelWidth + i] = source.read_bias(*output);
      }
    }
    char* const at = matrix.panels.As<char>() + panel * matrix.panel_bytes();
    if (as_bf16) {
      WriteBf16(kernels, rows, matrix.depth, rounded, reinterpret_cast<uint16_t*>(at));
    } else {
      WriteF32(rows, matrix.depth, reinterpret_cast<float*>(at));
    }
  }
  return matrix;
}

}  // namespace

Result<PackedMatrix> Pack(const Kernels& kernels, const PackedMatrix::Source& source,
                          bool as_bf16) {
  const int64_t num_panels = RoundUp(source.num_outputs, kPanelWidth) / kPanelWidth;
  return PackPanels(kernels, source, as_bf16, num_panels, PlainColumns);
}

Result<PackedMatrix> PackGated(const Kernels& kernels, const PackedMatrix::Source& source,
                               bool as_bf16) {
  PACE_CHECK(source.num_outputs % 2 == 0, "num_outputs = ", source.num_outputs);
  const int64_t num_panels = RoundUp(source.num_outputs / 2, kLanes) / kLanes;
  return PackPanels(kernels, source, as_bf16, num_panels, GatedColumns);
}

}  // namespace pace
