// Attention of one pass: which rows see which cached keys, and the loop over
// them.
//
// A unit is some queries of one chunk with the heads that share a key and value
// head; units are the same in every layer, so a pass plans them once.
#ifndef PACE_MODEL_CPU_ATTENTION_H_
#define PACE_MODEL_CPU_ATTENTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kv_cache.h"
#include "model/cpu/thread_pool.h"
#include "model/decoder.h"

namespace pace {

class Attention {
 public:
  Attention(const ModelConfig& config, const Kernels& kernels, ThreadPool& threads);

  // Plans a pass over these chunks, whose rows lie one after the other.
  void Plan(std::span<const Chunk> chunks);

  // The rows of one layer.
  struct Layer {
    int64_t index = 0;
    const float* qkv = nullptr;  // a row holds all query heads, key heads and value heads
    int64_t qkv_stride = 0;
    void* out = nullptr;
    int64_t out_stride = 0;  // elements
    bool out_is_bf16 = false;
  };
  // Writes the rows' keys and values into the cache, and attends.
  void Run(const Layer& layer, KvCache& cache);

 private:
  struct Unit {
    size_t chunk = 0;
    int64_t kv_head = 0;
    int64_t first_query = 0;  // within the chunk
    int64_t num_queries = 0;
    int64_t first_head = 0;
    int64_t num_heads = 0;
  };
  // A token whose keys and values are written before any unit runs.
  struct Write {
    size_t chunk = 0;
    int64_t token = 0;  // within the chunk
  };

  void AddUnits(size_t chunk, int64_t kv_head);
  // Gathers units into spans that are worth a task.
  void FormSpans();
  bool WritesItself(const Chunk& chunk) const;
  void WriteToken(size_t chunk_index, int64_t token, int64_t kv_head, const Layer& layer,
                  KvCache& cache) const;
  void RunUnit(const Unit& unit, const Layer& layer, KvCache& cache, float* scratch) const;

  const int64_t num_heads_;
  const int64_t num_kv_heads_;
  const int64_t head_dim_;
  const int64_t padded_dim_;
  const Kernels& kernels_;
  ThreadPool& threads_;

  std::span<const Chunk> chunks_;
  std::vector<int64_t> first_rows_;  // of each chunk, and the end
  std::vector<Write> writes_;
  std::vector<Unit> units_;
  std::vector<size_t> span_ends_;
  int64_t score_stride_ = 0;
  int64_t scratch_floats_ = 0;  // of one worker
  AlignedBuffer scratch_;
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_ATTENTION_H_
