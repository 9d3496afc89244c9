// Rows into panels, and rows into columns: templates over a vector level, so
// that each is compiled for it, and an element type.
#ifndef PACE_MODEL_CPU_GRADIENT_PANEL_IMPL_H_
#define PACE_MODEL_CPU_GRADIENT_PANEL_IMPL_H_

#include <cstdint>
#include <type_traits>

#include "model/cpu/kernels/kernels.h"

namespace pace {

// Where input k of output i lies in a panel.
template <typename V, typename T>
constexpr int64_t PlaceInPanel(int64_t k, int64_t i) {
  if constexpr (std::is_same_v<T, float>) {
    return k * kPanelWidth + i;
  } else {
    const int64_t half = k / kDepthStep * 2 + i / kLanes;
    return half * kDepthStep * kLanes + (k % kDepthStep / 2 * kLanes + i % kLanes) * 2 + k % 2;
  }
}

template <typename V, typename T>
constexpr int64_t DepthOf(int64_t n) {
  return std::is_same_v<T, float> ? n : (n + kDepthStep - 1) / kDepthStep * kDepthStep;
}

template <typename V, typename T>
void PackOutputs(const T* rows, int64_t stride, int64_t num_rows, int64_t width, T* panels) {
  const int64_t depth = DepthOf<V, T>(width);
  for (int64_t first = 0; first < num_rows; first += kPanelWidth, panels += depth * kPanelWidth) {
    const int64_t count = num_rows - first < kPanelWidth ? num_rows - first : kPanelWidth;
    const T* const from = rows + first * stride;
    if (count < kPanelWidth || depth != width) {
      for (int64_t i = 0; i < depth * kPanelWidth; ++i) panels[i] = T{0};
    }
    if constexpr (std::is_same_v<T, float>) {
      for (int64_t k = 0; k < width; ++k) {
        for (int64_t i = 0; i < count; ++i) panels[k * kPanelWidth + i] = from[i * stride + k];
      }
    } else {
      for (int64_t k = 0; k + 1 < width; k += 2) {
        T* const low = panels + PlaceInPanel<V, T>(k, 0);
        T* const high = panels + PlaceInPanel<V, T>(k, kLanes);
        for (int64_t i = 0; i < count; ++i) {
          T* const to = i < kLanes ? low + 2 * i : high + 2 * (i - kLanes);
          __builtin_memcpy(to, from + i * stride + k, 2 * sizeof(T));
        }
      }
      if (width % 2 == 1) {
        for (int64_t i = 0; i < count; ++i) {
          panels[PlaceInPanel<V, T>(width - 1, i)] = from[i * stride + width - 1];
        }
      }
    }
  }
}

template <typename V, typename T>
void PackInputs(const T* rows, int64_t stride, int64_t num_rows, int64_t width, T* panels) {
  const int64_t depth = DepthOf<V, T>(num_rows);
  for (int64_t first = 0; first < width; first += kPanelWidth, panels += depth * kPanelWidth) {
    const int64_t count = width - first < kPanelWidth ? width - first : kPanelWidth;
    if (count < kPanelWidth || depth != num_rows) {
      for (int64_t i = 0; i < depth * kPanelWidth; ++i) panels[i] = T{0};
    }
    for (int64_t k = 0; k < num_rows; ++k) {
      const T* const from = rows + k * stride + first;
      if constexpr (std::is_same_v<T, float>) {
        for (int64_t i = 0; i < count; ++i) panels[k * kPanelWidth + i] = from[i];
      } else {
        T* const low = panels + PlaceInPanel<V, T>(k, 0);
        T* const high = panels + PlaceInPanel<V, T>(k, kLanes);
        for (int64_t i = 0; i < count; ++i) {
          (i < kLanes ? low + 2 * i : high + 2 * (i - kLanes))[0] = from[i];
        }
      }
    }
  }
}

template <typename V, typename T>
void Transpose(const T* rows, int64_t stride, int64_t num_rows, int64_t width, T* out,
               int64_t out_stride) {
  for (int64_t i = 0; i < num_rows; i += kLanes) {
    for (int64_t j = 0; j < width; j += kLanes) {
      for (int64_t b = 0; b < kLanes; ++b) {
        for (int64_t a = 0; a < kLanes; ++a) {
          out[(j + b) * out_stride + i + a] = rows[(i + a) * stride + j + b];
        }
      }
    }
  }
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_GRADIENT_PANEL_IMPL_H_
