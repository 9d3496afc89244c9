// What softmax needs, forward and backward, along one row: templates over a
// vector level and an element type.
#ifndef PACE_MODEL_CPU_GRADIENT_SOFTMAX_GRADIENTS_IMPL_H_
#define PACE_MODEL_CPU_GRADIENT_SOFTMAX_GRADIENTS_IMPL_H_

#include <cstdint>

#include "model/cpu/gradient/row_gradients_impl.h"
#include "model/cpu/gradient/training_kernels.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kernels/vec_math.h"

namespace pace {

template <typename V, typename T>
void LogitGradient(const float* logits, int64_t n, float scale, float log_sum, float a, float b,
                   T* out) {
  const auto factor = V::Broadcast(scale);
  const auto offset = V::Broadcast(-log_sum);
  const auto constant = V::Broadcast(a);
  const auto slope = V::Broadcast(b);
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    const auto logit = LoadPiece<V>(logits + i, count);
    const auto share = Exp<V>(V::Fma(logit, factor, offset));
    StorePiece<V>(out + i, V::Mul(share, V::Fma(logit, slope, constant)), count);
  });
}

template <typename V>
void ScoreGradient(float* s, float* dp, int64_t n, float scale, float log_sum, float delta) {
  const auto factor = V::Broadcast(scale);
  const auto offset = V::Broadcast(-log_sum);
  const auto mean = V::Broadcast(delta);
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    const auto share = Exp<V>(V::Fma(LoadPiece<V>(s + i, count), factor, offset));
    const auto above = V::Sub(LoadPiece<V>(dp + i, count), mean);
    StorePiece<V>(s + i, share, count);
    StorePiece<V>(dp + i, V::Mul(V::Mul(share, factor), above), count);
  });
}

template <typename V>
TrainingKernels::Moments ExpMoments(const float* x, int64_t n, float shift, float scale) {
  const auto offset = V::Broadcast(shift);
  const auto factor = V::Broadcast(scale);
  auto sum = V::Zero();
  auto weighted = V::Zero();
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    const auto piece = LoadPiece<V>(x + i, count);
    auto term = Exp<V>(V::Mul(V::Sub(piece, offset), factor));
    if (count < kLanes) term = V::KeepFirst(term, count, V::Zero());
    sum = V::Add(sum, term);
    weighted = V::Fma(term, piece, weighted);
  });
  return {.sum = V::SumLanes(sum), .weighted = V::SumLanes(weighted)};
}

template <typename V>
float Dot(const float* x, const float* y, int64_t n) {
  auto sum = V::Zero();
  ForPieces<V>(n, [&](int64_t i, int64_t count) {
    sum = V::Fma(LoadPiece<V>(x + i, count), LoadPiece<V>(y + i, count), sum);
  });
  return V::SumLanes(sum);
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_GRADIENT_SOFTMAX_GRADIENTS_IMPL_H_
