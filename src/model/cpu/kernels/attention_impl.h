// The attention kernel, as a template over a vector level V and an element T of
// the cache.
//
// Scores, softmax, then one chain per output over the values, key by key: every
// step depends on the row's query and keys alone. Rows share loads, nothing
// else; elements after a row's last key never enter its sums.
#ifndef PACE_MODEL_CPU_KERNELS_ATTENTION_IMPL_H_
#define PACE_MODEL_CPU_KERNELS_ATTENTION_IMPL_H_

#include <cstdint>

#include "model/cpu/kernels/attention_scores.h"
#include "model/cpu/kernels/kernels.h"

namespace pace {

// Adds keys [from, to) of R rows into D vectors of their sums.
template <typename V, typename T, int R, int D>
void ValueTile(const AttendTask& task, int64_t row, int64_t vec, int64_t from, int64_t to) {
  using Vec = typename V::Vec;
  float* const sums = task.sums + row * task.padded_dim + vec * kLanes;
  const float* const weights = task.scores + row * task.score_stride;
  Vec sum[R][D];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < D; ++v) sum[r][v] = V::Load(sums + r * task.padded_dim + v * kLanes);
  }
  while (from < to) {
    const int64_t block = from / kLanes;
    const int64_t end = (block + 1) * kLanes < to ? (block + 1) * kLanes : to;
    const int64_t offset = from % kLanes * task.padded_dim + vec * kLanes;
    const T* value = BlockOf<V, T>(task, task.values, block) + offset;
    const T* next = BlockOf<V, T>(task, task.values, end < to ? block + 1 : block) + offset;
    for (int64_t key = from; key < end; ++key) {
      Vec element[D];
#pragma GCC unroll 4
      for (int v = 0; v < D; ++v) {
        __builtin_prefetch(next + v * kLanes);
        element[v] = LoadCached<V>(value + v * kLanes);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Vec weight = V::Broadcast(weights[r * task.score_stride + key]);
#pragma GCC unroll 4
        for (int v = 0; v < D; ++v) sum[r][v] = V::Fma(weight, element[v], sum[r][v]);
      }
      value += task.padded_dim;
      next += task.padded_dim;
    }
    from = end;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < D; ++v) V::Store(sums + r * task.padded_dim + v * kLanes, sum[r][v]);
  }
}

// R rows, whose keys differ by a few at most: together as far as all of them
// see, then each row alone.
template <typename V, typename T, int R, int D>
void ValueRows(const AttendTask& task, int64_t row, int64_t vec) {
  const int64_t shared = task.num_keys[row];
  ValueTile<V, T, R, D>(task, row, vec, 0, shared);
  for (int64_t r = row + 1; r < row + R; ++r) {
    if (task.num_keys[r] > shared) {
      ValueTile<V, T, 1, D>(task, r, vec, shared, task.num_keys[r]);
    }
  }
}

template <typename V, typename T, int R, int D>
void AnyValueRows(const AttendTask& task, int64_t row, int64_t num_rows, int64_t vec) {
  if constexpr (R > 1) {
    if (num_rows < R) return AnyValueRows<V, T, R - 1, D>(task, row, num_rows, vec);
  }
  ValueRows<V, T, R, D>(task, row, vec);
}

template <typename V, typename T, int D>
void ValueColumns(const AttendTask& task, int64_t vec) {
  for (int64_t row = 0; row < task.num_rows; row += V::kValueRows) {
    AnyValueRows<V, T, V::kValueRows, D>(task, row, task.num_rows - row, vec);
  }
}

template <typename V>
void StoreAttended(const AttendTask& task, int64_t row, float factor) {
  const float* const sums = task.sums + row * task.padded_dim;
  const auto scale = V::Broadcast(factor);
  for (int64_t d = 0; d < task.head_dim; d += kLanes) {
    const int64_t n = task.head_dim - d < kLanes ? task.head_dim - d : kLanes;
    const auto value = V::Mul(V::Load(sums + d), scale);
    if (!task.out_is_bf16) {
      float* const out = static_cast<float*>(task.outputs[row]) + d;
      if (n == kLanes) {
        V::Store(out, value);
      } else {
        V::StoreFirst(out, value, n);
      }
      continue;
    }
    uint16_t rounded[kLanes];
    V::StoreBf16(rounded, value);
    uint16_t* const out = static_cast<uint16_t*>(task.outputs[row]) + d;
    for (int64_t i = 0; i < n; ++i) out[i] = rounded[i];
  }
}

template <typename V, typename T>
void AttendCached(const AttendTask& task) {
  const int64_t most_keys = task.num_keys[task.num_rows - 1];
  Scores<V, T>(task, (most_keys + kLanes - 1) / kLanes);
  float factors[kMaxAttendRows];
  for (int64_t r = 0; r < task.num_rows; ++r) {
    factors[r] = Softmax<V>(task.scores + r * task.score_stride, task.num_keys[r]);
  }
  for (int64_t i = 0; i < task.num_rows * task.padded_dim; ++i) task.sums[i] = 0;
  const int64_t num_vecs = task.padded_dim / kLanes;
  int64_t vec = 0;
  for (; vec + V::kValueVecs <= num_vecs; vec += V::kValueVecs) {
    ValueColumns<V, T, V::kValueVecs>(task, vec);
  }
  for (; vec < num_vecs; ++vec) ValueColumns<V, T, 1>(task, vec);
  for (int64_t r = 0; r < task.num_rows; ++r) StoreAttended<V>(task, r, factors[r]);
}

template <typename V>
void Attend(const AttendTask& task) {
  if (task.cache_is_bf16) {
    AttendCached<V, uint16_t>(task);
  } else {
    AttendCached<V, float>(task);
  }
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_ATTENTION_IMPL_H_
