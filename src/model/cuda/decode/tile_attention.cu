// Attention of chunks: tiles of several query rows of one sequence.
#include "model/cuda/decode/attention_fragments.cuh"

namespace pace::cuda {
namespace {

constexpr int kTileWarps = 4;
constexpr int kTileFragments = kTileColumns / kTileWarps / kColumns;  // of one warp

template <int kDim>
__global__ void __launch_bounds__(kTileWarps * 32)
    TileAttentionKernel(AttentionArguments a, const QueryTile* tiles) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const AttentionShape shape(a, kDim);
  const QueryTile tile = tiles[blockIdx.x];
  const int kv_head = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int num_columns = tile.num_rows * shape.group;
  const int first_column = tile.first_column + warp * kTileFragments * kColumns;
  if (first_column >= num_columns) return;
  const int start = a.rows.positions[tile.first_row];
  const int32_t* const blocks = a.rows.blocks + a.rows.tables[tile.first_row];
  const Half* const queries = static_cast<const Half*>(a.queries);

  WarpColumns<kDim, kTileFragments> columns;
  columns.Clear();
  int last = 0;
#pragma unroll
  for (int f = 0; f < kTileFragments; ++f) {
    const int mine = first_column + f * kColumns + lane / 4;
    const int64_t row = tile.first_row + mine / shape.group;
    const int head = kv_head * shape.group + mine % shape.group;
    columns.LoadQuery(f, mine < num_columns ? queries + (row * a.num_heads + head) * kDim : nullptr,
                      lane % 4);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = first_column + f * kColumns + lane % 4 * 2 + c;
      columns.last[f][c] = column < num_columns ? start + column / shape.group : -1;
    }
  }
  const int end_column = min(num_columns, first_column + kTileFragments * kColumns);
  last = start + (end_column - 1) / shape.group;

  const Half* const cache = static_cast<const Half*>(a.cache.at) + kv_head * 2 * PageElements(kDim);
  for (int page = 0; page * kPageTokens <= last; ++page) {
    columns.Attend(cache + blocks[page] * shape.page_stride, page * kPageTokens, shape.scale, lane);
  }
  columns.JoinSums();
#pragma unroll
  for (int f = 0; f < kTileFragments; ++f) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = first_column + f * kColumns + lane % 4 * 2 + c;
      if (column >= num_columns) continue;
      const int64_t row = tile.first_row + column / shape.group;
      const int head = kv_head * shape.group + column % shape.group;
      Half* const out = static_cast<Half*>(a.out) + row * a.out_stride + head * a.cache.head_dim;
#pragma unroll
      for (int s = 0; s < kDim / 16; ++s) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int dim = s * 16 + lane / 4 + i * 8;
          if (dim >= a.cache.head_dim) continue;
          out[dim] = FromFloat<Half>(columns.out[f][s][c + 2 * i] / columns.sum[f][c]);
        }
      }
    }
  }
}

}  // namespace

void TileAttention(const AttentionArguments& a, const QueryTile* tiles, int64_t num_tiles,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(num_tiles), static_cast<unsigned>(a.cache.num_kv_heads));
  const auto kernel = [&] {
    switch (PaddedHeadDim(a.cache.head_dim)) {
      case 16:
        return TileAttentionKernel<16>;
      case 32:
        return TileAttentionKernel<32>;
      case 64:
        return TileAttentionKernel<64>;
      default:
        return TileAttentionKernel<128>;
    }
  }();
  Launch(kernel, grid, kTileWarps * 32, 0, stream, a, tiles);
}

}  // namespace pace::cuda
