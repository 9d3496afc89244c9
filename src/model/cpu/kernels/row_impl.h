// Kernels along one row, as templates over a vector level.
#ifndef PACE_MODEL_CPU_KERNELS_ROW_IMPL_H_
#define PACE_MODEL_CPU_KERNELS_ROW_IMPL_H_

#include <cstdint>

#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kernels/vec_math.h"

namespace pace {

// Calls body(i, n) for pieces of kLanes elements, n < kLanes for a last short one.
template <typename V, typename Body>
inline void ForPieces(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, n - i);
}

template <typename V>
inline typename V::Vec LoadPiece(const float* from, int64_t n) {
  return n == kLanes ? V::Load(from) : V::LoadFirst(from, n);
}

template <typename V>
inline void StorePiece(float* to, typename V::Vec x, int64_t n) {
  if (n == kLanes) {
    V::Store(to, x);
  } else {
    V::StoreFirst(to, x, n);
  }
}

template <typename V>
void RmsNorm(const float* x, const float* weight, int64_t n, float epsilon, float* out) {
  auto squares = V::Zero();
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    const auto piece = LoadPiece<V>(x + i, count);
    squares = V::Fma(piece, piece, squares);
  });
  const float mean = V::SumLanes(squares) / static_cast<float>(n);
  const auto factor = V::Broadcast(1.0F / __builtin_sqrtf(mean + epsilon));
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    const auto scaled = V::Mul(LoadPiece<V>(x + i, count), factor);
    StorePiece<V>(out + i, V::Mul(scaled, LoadPiece<V>(weight + i, count)), count);
  });
}

template <typename V>
void Rotate(float* head, const float* cosines, const float* sines, int64_t half) {
  ForPieces<V>(half, [&](int64_t i, int64_t count) {
    const auto first = LoadPiece<V>(head + i, count);
    const auto second = LoadPiece<V>(head + half + i, count);
    const auto cosine = LoadPiece<V>(cosines + i, count);
    const auto sine = LoadPiece<V>(sines + i, count);
    const auto minus_second = V::Sub(V::Zero(), second);
    StorePiece<V>(head + i, V::Fma(first, cosine, V::Mul(minus_second, sine)), count);
    StorePiece<V>(head + half + i, V::Fma(second, cosine, V::Mul(first, sine)), count);
  });
}

template <typename V>
void AddScaled(float a, const float* x, int64_t n, float* y) {
  const auto factor = V::Broadcast(a);
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    const auto sum = V::Fma(factor, LoadPiece<V>(x + i, count), LoadPiece<V>(y + i, count));
    StorePiece<V>(y + i, sum, count);
  });
}

template <typename V>
void ToBf16(const float* x, int64_t n, uint16_t* out) {
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    if (count == kLanes) return V::StoreBf16(out + i, V::Load(x + i));
    uint16_t rounded[kLanes];
    V::StoreBf16(rounded, V::LoadFirst(x + i, count));
    for (int64_t j = 0; j < count; ++j) out[i + j] = rounded[j];
  });
}

template <typename V>
void FromBf16(const uint16_t* x, int64_t n, float* out) {
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    if (count == kLanes) return V::Store(out + i, V::LoadBf16(x + i));
    uint16_t padded[kLanes] = {};
    for (int64_t j = 0; j < count; ++j) padded[j] = x[i + j];
    V::StoreFirst(out + i, V::LoadBf16(padded), count);
  });
}

template <typename V>
float MaxOf(const float* x, int64_t n) {
  const auto lowest = V::Broadcast(-__builtin_inff());
  // Four at a time: one would wait for the other.
  typename V::Vec largest[4] = {lowest, lowest, lowest, lowest};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int64_t j = 0; j < 4; ++j) largest[j] = V::Max(largest[j], V::Load(x + i + j * kLanes));
  }
  ForPieces<V>(n - i, [&](int64_t at, int64_t count) {
    const auto piece = LoadPiece<V>(x + i + at, count);
    largest[0] = V::Max(largest[0], count == kLanes ? piece : V::KeepFirst(piece, count, lowest));
  });
  return V::MaxLanes(V::Max(V::Max(largest[0], largest[1]), V::Max(largest[2], largest[3])));
}

template <typename V>
float ExpSum(const float* x, int64_t n, float shift, float scale, float* out) {
  const auto offset = V::Broadcast(shift);
  const auto factor = V::Broadcast(scale);
  auto sum = V::Zero();
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    auto term = Exp<V>(V::Mul(V::Sub(LoadPiece<V>(x + i, count), offset), factor));
    if (count < kLanes) term = V::KeepFirst(term, count, V::Zero());
    if (out != nullptr) StorePiece<V>(out + i, term, count);
    sum = V::Add(sum, term);
  });
  return V::SumLanes(sum);
}

template <typename V>
float SumAtLeast(const float* x, int64_t n, float limit) {
  const auto lowest = V::Broadcast(limit);
  auto sum = V::Zero();
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    const auto piece = LoadPiece<V>(x + i, count);
    const auto kept = V::ZeroWhereLess(piece, lowest, piece);
    sum = V::Add(sum, count == kLanes ? kept : V::KeepFirst(kept, count, V::Zero()));
  });
  return V::SumLanes(sum);
}

template <typename V>
int64_t FindAtLeast(const float* x, int64_t n, float limit, int32_t* out) {
  const auto lowest = V::Broadcast(limit);
  int64_t num_found = 0;
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    uint32_t mask = V::AtLeast(LoadPiece<V>(x + i, count), lowest);
    if (count < kLanes) mask &= (1U << count) - 1U;
    for (; mask != 0; mask &= mask - 1) {
      out[num_found++] = static_cast<int32_t>(i + __builtin_ctz(mask));
    }
  });
  return num_found;
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_ROW_IMPL_H_
