// Attention over the paged cache. See kernels.h.
#ifndef PACE_MODEL_CUDA_DECODE_ATTENTION_KERNELS_H_
#define PACE_MODEL_CUDA_DECODE_ATTENTION_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "model/cuda/kernels.h"

namespace pace::cuda {

// Several rows of one sequence that attend together.
struct QueryTile {
  int32_t first_row = 0;     // of the chunk
  int32_t num_rows = 0;      // of the chunk
  int32_t first_column = 0;  // a column is a row and a head of the group
};
// Columns of one tile.
inline constexpr int kTileColumns = 128;

struct AttentionArguments {
  const void* queries = nullptr;  // as Rotate writes them
  int num_heads = 0;
  RowTables rows{};
  LayerCache cache{};
  void* out = nullptr;  // heads one after the other, not padded
  int64_t out_stride = 0;
};

// Of any rows, one warp for a row and head: slow and obvious, for both elements.
void PlainAttention(const AttentionArguments& arguments, int64_t num_rows, cudaStream_t stream);

// Halves: of chunks of several rows.
void TileAttention(const AttentionArguments& arguments, const QueryTile* tiles, int64_t num_tiles,
                   cudaStream_t stream);

// Halves: of single rows, `which`[i]. The context is cut into at most
// num_splits parts, which run beside each other.
struct DecodeSplits {
  int num_splits = 1;
  float* partial = nullptr;     // DecodePartialFloats
  int32_t* finished = nullptr;  // zeros; num_rows * num_heads; left as zeros
};
int DecodeSplitsFor(int64_t num_rows, int num_kv_heads, int num_processors);
int64_t DecodePartialFloats(int64_t num_rows, int num_heads, int head_dim, int num_splits);
void DecodeAttention(const AttentionArguments& arguments, const int32_t* which, int64_t num_rows,
                     const DecodeSplits& splits, cudaStream_t stream);

// Rotate and DecodeAttention in one, of rows that belong to different sequences
// and that are all there are; `queries` are not used. Where CanRotateAndAttend.
bool CanRotateAndAttend(int num_heads, int num_kv_heads);
void RotateAndAttend(const AttentionArguments& arguments, const RotateArguments& rotate,
                     const int32_t* which, int64_t num_rows, const DecodeSplits& splits,
                     cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_ATTENTION_KERNELS_H_
