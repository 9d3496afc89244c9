#include "model/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/cpu/packed_matrix.h"
#include "model/cpu/thread_pool.h"

namespace pace {
namespace {

// Multiply-adds that are worth a task of their own: some microseconds.
constexpr int64_t kSpanWork = 400'000;

}  // namespace

Attention::Attention(const ModelConfig& config, const Kernels& kernels, ThreadPool& threads)
    : num_heads_(config.num_heads),
      num_kv_heads_(config.num_kv_heads),
      head_dim_(config.head_dim),
      padded_dim_(RoundUp(config.head_dim, kLanes)),
      kernels_(kernels),
      threads_(threads) {}

void Attention::Plan(std::span<const Chunk> chunks) {
  chunks_ = chunks;
  first_rows_.assign(1, 0);
  writes_.clear();
  int64_t most_keys = 0;
  for (size_t index = 0; index < chunks.size(); ++index) {
    const Chunk& chunk = chunks[index];
    for (int64_t token = 0; token < chunk.num_tokens && !WritesItself(chunk); ++token) {
      writes_.push_back({.chunk = index, .token = token});
    }
    first_rows_.push_back(first_rows_.back() + chunk.num_tokens);
    most_keys = std::max(most_keys, chunk.start + chunk.num_tokens);
  }
  units_.clear();
  // Head by head: sequences with common blocks then read them from the cache.
  for (int64_t kv_head = 0; kv_head < num_kv_heads_; ++kv_head) {
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) AddUnits(chunk, kv_head);
  }
  FormSpans();

  // An odd number of cache lines, so that rows do not share their places.
  score_stride_ = RoundUp(most_keys, 2 * kLanes) + kLanes;
  scratch_floats_ = kMaxAttendRows * (score_stride_ + 2 * padded_dim_);
  const int64_t num_bytes = threads_.num_threads() * scratch_floats_ * 4;
  if (scratch_.num_bytes() < num_bytes) {
    scratch_ = AlignedBuffer();
    scratch_ = AlignedBuffer::Allocate(num_bytes * 3 / 2).value();
  }
}

void Attention::AddUnits(size_t chunk, int64_t kv_head) {
  const int64_t group = num_heads_ / num_kv_heads_;
  const int64_t heads_per_unit = std::min(group, kMaxAttendRows);
  const int64_t queries_per_unit = kMaxAttendRows / heads_per_unit;
  for (int64_t query = 0; query < chunks_[chunk].num_tokens; query += queries_per_unit) {
    for (int64_t head = 0; head < group; head += heads_per_unit) {
      units_.push_back(
          {.chunk = chunk,
           .kv_head = kv_head,
           .first_query = query,
           .num_queries = std::min(queries_per_unit, chunks_[chunk].num_tokens - query),
           .first_head = kv_head * group + head,
           .num_heads = std::min(heads_per_unit, group - head)});
    }
  }
}

void Attention::FormSpans() {
  span_ends_.clear();
  int64_t work = 0;
  for (size_t i = 0; i < units_.size(); ++i) {
    const Unit& unit = units_[i];
    const int64_t num_keys = chunks_[unit.chunk].start + unit.first_query + unit.num_queries;
    // Two products per key; loading a key costs about as much as two rows of it.
    work += 2 * num_keys * head_dim_ * (unit.num_queries * unit.num_heads + 2);
    if (work >= kSpanWork || i + 1 == units_.size()) {
      span_ends_.push_back(i + 1);
      work = 0;
    }
  }
}

void Attention::Run(const Layer& layer, KvCache& cache) {
  ForRows(threads_, static_cast<int64_t>(writes_.size()), 4 * num_kv_heads_ * head_dim_,
          [&](int64_t i, int64_t) {
            const Write& write = writes_[static_cast<size_t>(i)];
            for (int64_t h = 0; h < num_kv_heads_; ++h) {
              WriteToken(write.chunk, write.token, h, layer, cache);
            }
          });
  threads_.ParallelFor(static_cast<int64_t>(span_ends_.size()), [&](int64_t span, int64_t worker) {
    const auto s = static_cast<size_t>(span);
    float* const scratch = scratch_.As<float>() + worker * scratch_floats_;
    for (size_t i = s == 0 ? 0 : span_ends_[s - 1]; i < span_ends_[s]; ++i) {
      RunUnit(units_[i], layer, cache, scratch);
    }
  });
}

// In this pass, a single token is read by the unit that has its head alone; that
// unit's stores then overlap with its loads.
bool Attention::WritesItself(const Chunk& chunk) const {
  return chunk.num_tokens == 1 && num_heads_ / num_kv_heads_ <= kMaxAttendRows;
}

void Attention::WriteToken(size_t chunk_index, int64_t token, int64_t kv_head, const Layer& layer,
                           KvCache& cache) const {
  const Chunk& chunk = chunks_[chunk_index];
  const int64_t position = chunk.start + token;
  const BlockId block = chunk.blocks[static_cast<size_t>(position / kBlockTokens)];
  const float* const key = layer.qkv + (first_rows_[chunk_index] + token) * layer.qkv_stride +
                           (num_heads_ + kv_head) * head_dim_;
  cache.Write(kernels_, layer.index, kv_head, block, position % kBlockTokens, key,
              key + num_kv_heads_ * head_dim_);
}

void Attention::RunUnit(const Unit& unit, const Layer& layer, KvCache& cache,
                        float* scratch) const {
  const Chunk& chunk = chunks_[unit.chunk];
  if (WritesItself(chunk)) WriteToken(unit.chunk, 0, unit.kv_head, layer, cache);
  const int64_t out_bytes = layer.out_is_bf16 ? 2 : 4;
  AttendTask task;
  task.num_rows = unit.num_queries * unit.num_heads;
  for (int64_t q = 0; q < unit.num_queries; ++q) {
    const int64_t row = first_rows_[unit.chunk] + unit.first_query + q;
    for (int64_t h = 0; h < unit.num_heads; ++h) {
      const int64_t i = q * unit.num_heads + h;
      const int64_t column = (unit.first_head + h) * head_dim_;
      task.queries[i] = layer.qkv + row * layer.qkv_stride + column;
      task.num_keys[i] = chunk.start + unit.first_query + q + 1;
      task.outputs[i] =
          static_cast<char*>(layer.out) + (row * layer.out_stride + column) * out_bytes;
    }
  }
  task.out_is_bf16 = layer.out_is_bf16;
  task.blocks = chunk.blocks.data();
  task.keys = cache.Keys(layer.index, unit.kv_head);
  task.values = cache.Values(layer.index, unit.kv_head);
  task.block_stride = cache.block_stride();
  task.cache_is_bf16 = cache.is_bf16();
  task.head_dim = head_dim_;
  task.padded_dim = padded_dim_;
  task.scale = 1.0F / std::sqrt(static_cast<float>(head_dim_));
  task.scores = scratch;
  task.score_stride = score_stride_;
  task.packed = scratch + kMaxAttendRows * score_stride_;
  task.sums = task.packed + kMaxAttendRows * padded_dim_;
  kernels_.attend(task);
}

}  // namespace pace
