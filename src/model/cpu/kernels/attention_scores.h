// Attention scores and their softmax: kernels as templates over a vector level
// V and an element T of the cache.
//
// A score is one chain over the head's elements; sixteen keys at a time. The
// softmax of a row reads its own keys alone, lane by lane over the blocks.
#ifndef PACE_MODEL_CPU_KERNELS_ATTENTION_SCORES_H_
#define PACE_MODEL_CPU_KERNELS_ATTENTION_SCORES_H_

#include <cstdint>

#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kernels/vec_math.h"

namespace pace {

template <typename V>
inline typename V::Vec LoadCached(const float* from) {
  return V::Load(from);
}
template <typename V>
inline typename V::Vec LoadCached(const uint16_t* from) {
  return V::LoadBf16(from);
}

template <typename V, typename T>
inline const T* BlockOf(const AttendTask& task, const char* base, int64_t block) {
  return reinterpret_cast<const T*>(base + task.blocks[block] * task.block_stride);
}

// R rows against B blocks of keys; fetches the next B blocks meanwhile, and for the step
// after this one the values that belong to these.
template <typename V, typename T, int R, int B>
void ScoreTile(const AttendTask& task, int64_t row, int64_t block, int64_t num_blocks) {
  using Vec = typename V::Vec;
  const T* keys[B];
  const T* next[B];
  const T* values[B];
#pragma GCC unroll 8
  for (int b = 0; b < B; ++b) {
    keys[b] = BlockOf<V, T>(task, task.keys, block + b);
    const int64_t ahead = block + B + b < num_blocks ? block + B + b : block + b;
    next[b] = BlockOf<V, T>(task, task.keys, ahead);
    values[b] = BlockOf<V, T>(task, task.values, block + b);
  }
  const float* query = task.packed + row;
  Vec sum[R][B];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) sum[r][b] = V::Zero();
  }
  for (int64_t d = 0; d < task.head_dim; ++d) {
    Vec key[B];
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) {
      __builtin_prefetch(next[b] + d * kLanes);
      if constexpr (V::kFetchesAhead) __builtin_prefetch(values[b] + d * kLanes, 0, 2);
      key[b] = LoadCached<V>(keys[b] + d * kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec q = V::Broadcast(query[r]);
#pragma GCC unroll 8
      for (int b = 0; b < B; ++b) sum[r][b] = V::Fma(q, key[b], sum[r][b]);
    }
    query += kMaxAttendRows;
  }
  const Vec scale = V::Broadcast(task.scale);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float* const scores = task.scores + (row + r) * task.score_stride + block * kLanes;
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) V::Store(scores + b * kLanes, V::Mul(sum[r][b], scale));
  }
}

template <typename V, typename T, int R, int B>
void AnyScoreTile(const AttendTask& task, int64_t row, int64_t num_rows, int64_t block,
                  int64_t num_blocks) {
  if constexpr (R > 1) {
    if (num_rows < R) {
      return AnyScoreTile<V, T, R - 1, B>(task, row, num_rows, block, num_blocks);
    }
  }
  ScoreTile<V, T, R, B>(task, row, block, num_blocks);
}

template <typename V, typename T, int B>
void ScoreBlocks(const AttendTask& task, int64_t block, int64_t num_blocks) {
  for (int64_t row = 0; row < task.num_rows; row += V::kScoreRows) {
    AnyScoreTile<V, T, V::kScoreRows, B>(task, row, task.num_rows - row, block, num_blocks);
  }
}

// All rows against the first num_blocks blocks. Rows with fewer keys get scores
// that nobody reads.
template <typename V, typename T>
void Scores(const AttendTask& task, int64_t num_blocks) {
  if constexpr (V::kFetchesAhead) {
    const T* const first = BlockOf<V, T>(task, task.keys, 0);
    for (int64_t d = 0; d < task.head_dim; ++d) __builtin_prefetch(first + d * kLanes);
  }
  for (int64_t r = 0; r < task.num_rows; ++r) {
    for (int64_t d = 0; d < task.head_dim; ++d) {
      task.packed[d * kMaxAttendRows + r] = task.queries[r][d];
    }
  }
  int64_t block = 0;
  for (; block + V::kScoreBlocks <= num_blocks; block += V::kScoreBlocks) {
    ScoreBlocks<V, T, V::kScoreBlocks>(task, block, num_blocks);
  }
  for (; block < num_blocks; ++block) ScoreBlocks<V, T, 1>(task, block, num_blocks);
}

// Turns a row's scores into exponentials; returns 1 / their sum.
template <typename V>
float Softmax(float* scores, int64_t num_keys) {
  using Vec = typename V::Vec;
  const int64_t whole = num_keys / kLanes * kLanes;
  const int64_t rest = num_keys - whole;
  const Vec lowest = V::Broadcast(-__builtin_inff());
  Vec largest = lowest;
  for (int64_t k = 0; k < whole; k += kLanes) largest = V::Max(largest, V::Load(scores + k));
  if (rest > 0) {
    largest = V::Max(largest, V::KeepFirst(V::Load(scores + whole), rest, lowest));
  }
  const Vec shift = V::Broadcast(V::MaxLanes(largest));
  Vec sum = V::Zero();
  for (int64_t k = 0; k < whole; k += kLanes) {
    const Vec term = Exp<V>(V::Sub(V::Load(scores + k), shift));
    V::Store(scores + k, term);
    sum = V::Add(sum, term);
  }
  if (rest > 0) {
    const Vec term = Exp<V>(V::Sub(V::Load(scores + whole), shift));
    V::Store(scores + whole, term);
    sum = V::Add(sum, V::KeepFirst(term, rest, V::Zero()));
  }
  return 1.0F / V::SumLanes(sum);
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_ATTENTION_SCORES_H_
