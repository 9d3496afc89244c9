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
#include "model/cpu/kernels.h"
#include "model/cpu/kv_cache.h"
#include "model/cpu/thread_team.h"
#include "model/decoder.h"

namespace pace {

class Attention {
 public:
  Attention(const ModelConfig& config, const Kernels& kernels, ThreadTeam& team);

  // Plans a pass over these chunks, whose rows lie one after the other.
  void Plan(std::span<const Chunk> chunks);

  // Writes the rows' keys and values into the cache, then attends. A row of
  // `qkv` holds all query heads, key heads and value heads.
  void Run(const float* qkv, int64_t qkv_stride, int64_t layer, KvCache& cache, void* out,
           int64_t out_stride, bool out_is_bf16);

 private:
  struct Unit {
    size_t chunk = 0;
    int64_t kv_head = 0;
    int64_t first_query = 0;  // within the chunk
    int64_t num_queries = 0;
    int64_t first_head = 0;
    int64_t num_heads = 0;
  };
  struct Output {
    char* data = nullptr;
    int64_t row_bytes = 0;
    bool is_bf16 = false;
  };

  void WriteRows(const float* qkv, int64_t qkv_stride, int64_t layer, KvCache& cache) const;
  void AddUnits(size_t chunk, int64_t kv_head);
  // Gathers units into spans that are worth a task.
  void FormSpans();
  void RunUnit(const Unit& unit, const float* qkv, int64_t qkv_stride, int64_t layer,
               const KvCache& cache, const Output& out, float* scratch) const;

  const int64_t num_heads_;
  const int64_t num_kv_heads_;
  const int64_t head_dim_;
  const int64_t padded_dim_;
  const Kernels& kernels_;
  ThreadTeam& team_;

  std::span<const Chunk> chunks_;
  std::vector<int64_t> first_rows_;  // of each chunk, and the end
  std::vector<int64_t> chunk_of_;    // of each row
  std::vector<Unit> units_;
  std::vector<size_t> span_ends_;
  int64_t score_stride_ = 0;
  int64_t scratch_floats_ = 0;  // of one worker
  AlignedBuffer scratch_;
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_ATTENTION_H_
