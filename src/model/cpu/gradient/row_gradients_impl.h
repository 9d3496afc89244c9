// Norms and gates with their gradients, as templates over a vector level and an
// element type.
#ifndef PACE_MODEL_CPU_GRADIENT_ROW_GRADIENTS_IMPL_H_
#define PACE_MODEL_CPU_GRADIENT_ROW_GRADIENTS_IMPL_H_

#include <cstdint>

#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kernels/row_impl.h"
#include "model/cpu/kernels/vec_math.h"

namespace pace {

template <typename V>
inline typename V::Vec LoadPiece(const uint16_t* from, int64_t n) {
  if (n == kLanes) return V::LoadBf16(from);
  uint16_t padded[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = from[i];
  return V::LoadBf16(padded);
}

template <typename V>
inline void StorePiece(uint16_t* to, typename V::Vec x, int64_t n) {
  if (n == kLanes) return V::StoreBf16(to, x);
  uint16_t rounded[kLanes];
  V::StoreBf16(rounded, x);
  for (int64_t i = 0; i < n; ++i) to[i] = rounded[i];
}

// 1 / sqrt(mean(x^2) + epsilon)
template <typename V, typename T>
inline float NormScale(const T* x, int64_t n, float epsilon) {
  auto squares = V::Zero();
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    const auto piece = LoadPiece<V>(x + i, count);
    squares = V::Fma(piece, piece, squares);
  });
  return 1.0F / __builtin_sqrtf(V::SumLanes(squares) / static_cast<float>(n) + epsilon);
}

template <typename V, typename T>
void NormRows(const T* x, const float* weight, float epsilon, int64_t num_rows, int64_t n, T* y) {
  for (int64_t row = 0; row < num_rows; ++row, x += n, y += n) {
    const auto scale = V::Broadcast(NormScale<V>(x, n, epsilon));
    ForPieces<V>(n, [&](int64_t i, int64_t count) {
      const auto scaled = V::Mul(LoadPiece<V>(x + i, count), scale);
      StorePiece<V>(y + i, V::Mul(scaled, LoadPiece<V>(weight + i, count)), count);
    });
  }
}

// dx = scale (g w - x scale^2 mean(g w x)), dw += g x scale.
template <typename V, typename T>
void NormGradientRows(const T* g, const T* x, const float* weight, float epsilon, int64_t num_rows,
                      int64_t n, T* dx, float* dw) {
  for (int64_t row = 0; row < num_rows; ++row, g += n, x += n, dx += n) {
    auto squares = V::Zero();
    auto products = V::Zero();
    ForPieces<V>(n, [&](int64_t i, int64_t count) {
      const auto piece = LoadPiece<V>(x + i, count);
      const auto pulled = V::Mul(LoadPiece<V>(g + i, count), LoadPiece<V>(weight + i, count));
      squares = V::Fma(piece, piece, squares);
      products = V::Fma(pulled, piece, products);
    });
    const auto size = static_cast<float>(n);
    const float scale = 1.0F / __builtin_sqrtf(V::SumLanes(squares) / size + epsilon);
    const float pull = V::SumLanes(products) / size * scale * scale * scale;
    const auto scales = V::Broadcast(scale);
    const auto pulls = V::Broadcast(-pull);
    ForPieces<V>(n, [&](int64_t i, int64_t count) {
      const auto piece = LoadPiece<V>(x + i, count);
      const auto scaled = V::Mul(LoadPiece<V>(g + i, count), scales);
      const auto direct = V::Mul(scaled, LoadPiece<V>(weight + i, count));
      StorePiece<V>(dx + i, V::Fma(pulls, piece, direct), count);
      StorePiece<V>(dw + i, V::Fma(scaled, piece, LoadPiece<V>(dw + i, count)), count);
    });
  }
}

template <typename V, typename T>
void GatedRows(const T* gate_up, int64_t num_rows, int64_t n, T* y) {
  for (int64_t row = 0; row < num_rows; ++row, gate_up += 2 * n, y += n) {
    ForPieces<V>(n, [&](int64_t i, int64_t count) {
      const auto gate = LoadPiece<V>(gate_up + i, count);
      const auto up = LoadPiece<V>(gate_up + n + i, count);
      StorePiece<V>(y + i, V::Mul(Silu<V>(gate), up), count);
    });
  }
}

// With s = 1 / (1 + e^-gate): silu' = s (1 + gate (1 - s)).
template <typename V, typename T>
void GatedGradientRows(const T* g, const T* gate_up, int64_t num_rows, int64_t n, T* d_gate_up) {
  const auto one = V::Broadcast(1.0F);
  for (int64_t row = 0; row < num_rows; ++row, g += n, gate_up += 2 * n, d_gate_up += 2 * n) {
    ForPieces<V>(n, [&](int64_t i, int64_t count) {
      const auto gate = LoadPiece<V>(gate_up + i, count);
      const auto up = LoadPiece<V>(gate_up + n + i, count);
      const auto from = LoadPiece<V>(g + i, count);
      const auto share = V::Div(one, V::Add(one, Exp<V>(V::Sub(V::Zero(), gate))));
      const auto slope = V::Mul(share, V::Fma(gate, V::Sub(one, share), one));
      StorePiece<V>(d_gate_up + i, V::Mul(V::Mul(from, up), slope), count);
      StorePiece<V>(d_gate_up + n + i, V::Mul(from, V::Mul(gate, share)), count);
    });
  }
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_GRADIENT_ROW_GRADIENTS_IMPL_H_
