// Attention of chunks: tiles of several query rows of one sequence.
//
// A column is one query row with one of the heads that share a key/value head. Each warp holds
// sixteen columns, or twice as many, as the rows of its fragments; keys and values pass through
// shared memory, whole pages at a time, brought by the copy engine. Pages lie in the order of
// fragments (cache_layout.h), so a warp reads them with 16-byte loads, and the scores of a lane
// are of the tokens that its values are of: weights become the left operand of the sums without
// leaving their lanes.
#include "model/cuda/bulk_copy.cuh"
#include "model/cuda/decode/attention_fragments.cuh"

namespace pace::cuda {
namespace {

constexpr int kFragmentRows = 16;
// Unnormalised attention weights are at most 2^kSlack, far below the range of float32 sums.
constexpr float kSlack = 8;

__device__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// What the warps of a block share; it leaves the registers to fragments.
struct TileWork {
  int first_row;
  int first_column;
  int kv_head;
  int group;
  int num_columns;  // of the chunk
  int start;        // position of its first row
  int num_pages;
  const int32_t* blocks;
  const Half* cache;
  int64_t page_stride;

  // Position that a column sees last; -1 = no column.
  __device__ int LastOf(int column) const {
    return column < num_columns ? start + column / group : -1;
  }
  __device__ int64_t RowOf(int column) const { return first_row + column / group; }
  __device__ int HeadOf(int column) const { return kv_head * group + column % group; }
};

// kTiles: fragments of sixteen columns for each warp. kAtOnce: pages between two updates of the
// softmax. kStages: groups of kAtOnce pages in shared memory.
template <int kDimension, int kTileCount, int kWarpCount, int kAtOncePages, int kStageCount,
          int kBlocksOfProcessor>
struct TileSetting {
  static constexpr int kDim = kDimension;
  static constexpr int kTiles = kTileCount;
  static constexpr int kWarps = kWarpCount;
  static constexpr int kAtOnce = kAtOncePages;
  static constexpr int kStages = kStageCount;
  static constexpr int kBlocks = kBlocksOfProcessor;
  // Rounds that warp 0 may be ahead of the others.
  static constexpr int kLag = kStages / 2;
  static constexpr int kColumns = kTiles * kWarps * kFragmentRows;
  static constexpr int kSteps = kDim / 16;
  static constexpr int kPageBytes = 2 * PageElements(kDim) * static_cast<int>(sizeof(Half));
  static constexpr int kStageBytes = kAtOnce * kPageBytes;
};

template <typename S>
struct TileColumns {
  static constexpr int kTiles = S::kTiles;
  static constexpr int kSteps = S::kSteps;
  uint32_t query[kTiles][kSteps][4];
  float out[kTiles][2 * kSteps][4] = {};
  float largest[kTiles][2];
  float sum[kTiles][2] = {};

  // `first`: column of this lane in the first half of the first fragment.
  __device__ void Load(const AttentionArguments& a, const TileWork& work, int first, int lane) {
    const Half* const queries = static_cast<const Half*>(a.queries);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        largest[m][h] = -INFINITY;
        const int column = first + m * kFragmentRows + h * 8;
        const bool is_there = column < work.num_columns;
        const Half* const from =
            queries + (work.RowOf(column) * a.num_heads + work.HeadOf(column)) * S::kDim +
            lane % 4 * 4;
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
          const uint2 pair =
              is_there ? *reinterpret_cast<const uint2*>(from + s * 16) : make_uint2(0, 0);
          query[m][s][h] = pair.x;
          query[m][s][h + 2] = pair.y;
        }
      }
    }
  }

  // Pages [0, count) of a stage; the first token of page 0 has this position. kMasked: some
  // column does not see all of the tokens.
  template <bool kMasked>
  __device__ void Attend(const unsigned char* stage, int position, float scale, int lane,
                         const TileWork& work, int first) {
    float score[kTiles][S::kAtOnce][2][4] = {};
    const uint4* const pages = reinterpret_cast<const uint4*>(stage) + lane;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int p = 0; p < S::kAtOnce; ++p) {
        const uint4 key = pages[p * (S::kPageBytes / 16) + s * 32];
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          const uint32_t(&q)[4] = query[m][s];
          Multiply(score[m][p][0], q[0], q[1], q[2], q[3], key.x, key.y);
          Multiply(score[m][p][1], q[0], q[1], q[2], q[3], key.z, key.w);
        }
      }
    }
    Weigh<kMasked>(score, position, scale, lane, work, first);
    uint32_t weights[S::kAtOnce][kTiles][4];
#pragma unroll
    for (int p = 0; p < S::kAtOnce; ++p) {
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&pair)[4] = score[m][p][i / 2];
          weights[p][m][i] = PackHalves(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
        }
      }
    }
    const uint4* const values = pages + PageElements(S::kDim) / 8;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int p = 0; p < S::kAtOnce; ++p) {
        const uint4 value = values[p * (S::kPageBytes / 16) + s * 32];
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          const uint32_t(&w)[4] = weights[p][m];
          Multiply(out[m][2 * s], w[0], w[1], w[2], w[3], value.x, value.y);
          Multiply(out[m][2 * s + 1], w[0], w[1], w[2], w[3], value.z, value.w);
        }
      }
    }
  }

  // Scores into weights, relative to a score near the largest so far: the sums are rescaled only
  // where a score exceeds it by kSlack, so that most rounds need nothing of other lanes.
  template <bool kMasked>
  __device__ void Weigh(float (&score)[kTiles][S::kAtOnce][2][4], int position, float scale,
                        int lane, const TileWork& work, int first) {
    float top[kTiles][2];
    bool grows = false;
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int last = kMasked ? work.LastOf(first + m * kFragmentRows + h * 8) : 0;
        float largest_here = -INFINITY;
#pragma unroll
        for (int p = 0; p < S::kAtOnce; ++p) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float& x = score[m][p][i / 2][h * 2 + i % 2];
            const int token = position + p * kPageTokens + lane % 4 * 4 + i;
            if (kMasked && token > last) x = -INFINITY;
            largest_here = fmaxf(largest_here, x);
          }
        }
        top[m][h] = largest_here * scale;
        grows |= top[m][h] > largest[m][h] + kSlack;
      }
    }
    if (__any_sync(kAllLanes, grows)) Rescale(top);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float safe = kMasked && largest[m][h] == -INFINITY ? 0.0F : largest[m][h];
#pragma unroll
        for (int p = 0; p < S::kAtOnce; ++p) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float& x = score[m][p][i / 2][h * 2 + i % 2];
            x = Exp2(x * scale - safe);
            sum[m][h] += x;
          }
        }
      }
    }
  }

  // `top`: the largest new score of each column among those of this lane. A column's sums do not
  // depend on other columns.
  __device__ void Rescale(const float (&top)[kTiles][2]) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      float factor[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float of_column = fmaxf(top[m][h], __shfl_xor_sync(kAllLanes, top[m][h], 1));
        of_column = fmaxf(of_column, __shfl_xor_sync(kAllLanes, of_column, 2));
        const bool grows = of_column > largest[m][h] + kSlack;
        factor[h] = grows ? Exp2(largest[m][h] - of_column) : 1.0F;
        if (grows) largest[m][h] = of_column;
        sum[m][h] *= factor[h];
      }
#pragma unroll
      for (int s = 0; s < 2 * kSteps; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) out[m][s][i] *= factor[i / 2];
      }
    }
  }

  __device__ void Store(const AttentionArguments& a, const TileWork& work, int first, int lane) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float total = sum[m][h];
        total += __shfl_xor_sync(kAllLanes, total, 1);
        total += __shfl_xor_sync(kAllLanes, total, 2);
        const float share = 1.0F / total;
        const int column = first + m * kFragmentRows + h * 8;
        if (column >= work.num_columns) continue;
        Half* const to = static_cast<Half*>(a.out) + work.RowOf(column) * a.out_stride +
                         work.HeadOf(column) * a.cache.head_dim;
#pragma unroll
        for (int s = 0; s < 2 * kSteps; ++s) {
          const int dim = s * 8 + lane % 4 * 2;
          if (dim >= a.cache.head_dim) continue;
          *reinterpret_cast<uint32_t*>(to + dim) =
              PackHalves(out[m][s][h * 2] * share, out[m][s][h * 2 + 1] * share);
        }
      }
    }
  }
};

// Grid: key/value heads, tiles.
template <typename S>
__global__ void __launch_bounds__(S::kWarps * 32, S::kBlocks)
    TileAttentionKernel(AttentionArguments a, const QueryTile* tiles) {
  extern __shared__ __align__(128) unsigned char stages[];
  __shared__ CopyBarrier is_full[S::kStages];
  __shared__ CopyBarrier is_free[S::kStages];
  __shared__ TileWork work;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  if (threadIdx.x == 0) {
    for (int s = 0; s < S::kStages; ++s) {
      is_full[s].Init(S::kAtOnce);
      is_free[s].Init(S::kWarps * kArrivalsOfWarp);
    }
    FenceBarriers();
  }
  ReleaseSuccessor();
  WaitForPredecessor();
  const float scale = AttentionShape(a, S::kDim).scale;
  if (threadIdx.x == 0) {
    const AttentionShape shape(a, S::kDim);
    const QueryTile tile = tiles[blockIdx.y];
    work.first_row = tile.first_row;
    work.first_column = tile.first_column;
    work.kv_head = static_cast<int>(blockIdx.x);
    work.group = shape.group;
    work.num_columns = tile.num_rows * shape.group;
    work.start = a.rows.positions[tile.first_row];
    const int end_column = min(work.num_columns, tile.first_column + S::kColumns);
    work.num_pages = (work.start + (end_column - 1) / shape.group) / kPageTokens + 1;
    work.blocks = a.rows.blocks + a.rows.tables[tile.first_row];
    work.cache = static_cast<const Half*>(a.cache.at) + work.kv_head * 2 * PageElements(S::kDim);
    work.page_stride = shape.page_stride;
  }
  __syncthreads();

  // The first lanes of warp 0 bring a page each; beyond the last page they bring it again.
  const bool brings = warp == 0 && lane < S::kAtOnce;
  const auto bring = [&](int round) {
    const int s = round % S::kStages;
    const int64_t block = work.blocks[min(round * S::kAtOnce + lane, work.num_pages - 1)];
    is_full[s].ArriveAndExpect(S::kPageBytes);
    CopyToShared(stages + s * S::kStageBytes + lane * S::kPageBytes,
                 work.cache + block * work.page_stride, S::kPageBytes, is_full[s]);
  };
  const int num_rounds = (work.num_pages + S::kAtOnce - 1) / S::kAtOnce;
  if (brings) {
    FenceForCopies();
    for (int round = 0; round < min(S::kStages, num_rounds); ++round) bring(round);
  }

  const int first = work.first_column + warp * S::kTiles * kFragmentRows + lane / 4;
  TileColumns<S> columns;
  columns.Load(a, work, first, lane);
  // Tokens that all columns of the warp see, and tokens that some do.
  const int warp_first = first - lane / 4;
  const int warp_last = warp_first + S::kTiles * kFragmentRows - 1;
  const int seen_by_all = work.LastOf(warp_last) < 0 ? -1 : work.LastOf(warp_first);
  const int seen =
      warp_first < work.num_columns ? work.LastOf(min(warp_last, work.num_columns - 1)) : -1;
  for (int round = 0; round < num_rounds; ++round) {
    // The stage of an earlier round is free when all warps have left it.
    const int left = round - S::kLag;
    if (brings && left >= 0 && left + S::kStages < num_rounds) {
      is_free[left % S::kStages].Wait(left / S::kStages % 2);
      bring(left + S::kStages);
    }
    __syncwarp();
    const int s = round % S::kStages;
    is_full[s].Wait(round / S::kStages % 2);
    const int position = round * S::kAtOnce * kPageTokens;
    const unsigned char* const stage = stages + s * S::kStageBytes;
    if (position + S::kAtOnce * kPageTokens - 1 <= seen_by_all) {
      columns.template Attend<false>(stage, position, scale, lane, work, first);
    } else if (position <= seen) {
      columns.template Attend<true>(stage, position, scale, lane, work, first);
    }
    is_free[s].ArriveAsWarp(lane);
  }
  columns.Store(a, work, first, lane);
}

template <typename S>
void LaunchTiles(const AttentionArguments& a, const QueryTile* tiles, int64_t num_tiles,
                 cudaStream_t stream) {
  static_assert(S::kColumns == kTileColumns);
  constexpr int kBytes = S::kStages * S::kStageBytes;
  const auto kernel = TileAttentionKernel<S>;
  // Barriers come on top: a launch without this fails already where the stages take 48 KiB.
  (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(static_cast<unsigned>(a.cache.num_kv_heads), static_cast<unsigned>(num_tiles));
  Launch(kernel, grid, S::kWarps * 32, kBytes, stream, a, tiles);
}

// The fastest that was measured on an H200: with two pages at once a warp has eight sums that do
// not wait for each other. A few registers spill.
template <int kDim>
using FastSetting = TileSetting<kDim, 2, 4, 2, 4, 2>;

}  // namespace

void TileAttention(const AttentionArguments& a, const QueryTile* tiles, int64_t num_tiles,
                   cudaStream_t stream) {
  switch (PaddedHeadDim(a.cache.head_dim)) {
    case 16:
      return LaunchTiles<FastSetting<16>>(a, tiles, num_tiles, stream);
    case 32:
      return LaunchTiles<FastSetting<32>>(a, tiles, num_tiles, stream);
    case 64:
      return LaunchTiles<FastSetting<64>>(a, tiles, num_tiles, stream);
    default:
      return LaunchTiles<FastSetting<128>>(a, tiles, num_tiles, stream);
  }
}

}  // namespace pace::cuda
