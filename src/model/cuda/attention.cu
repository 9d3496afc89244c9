// Attention over the paged cache with tensor cores.
//
// Scores and sums are computed transposed: S^T = K Q^T and O^T = V^T P^T, so
// that the sixteen rows of a fragment are the sixteen tokens of a page (or
// sixteen dimensions) and its eight columns are queries. A column is one query
// row with one of the heads that share a key/value head.
#include "model/cuda/attention_kernels.h"
#include "model/cuda/cache_layout.h"
#include "model/cuda/head_pairs.cuh"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

constexpr int kColumns = 8;  // of a fragment
constexpr int kTileWarps = 4;
constexpr int kTileFragments = kTileColumns / kTileWarps / kColumns;  // of one warp
// Warps that share a context: more where few contexts leave processors idle.
constexpr int kFewWarps = 4;
constexpr int kManyWarps = 8;
// Pages that are worth a block of their own.
constexpr int kMinSplitPages = 2 * kManyWarps;
constexpr int kMaxSplits = 32;
constexpr float kLog2E = 1.44269504F;

struct AttentionShape {
  int64_t page_stride;  // elements from a block to the next
  int group;            // heads that share a key/value head
  float scale;          // of scores, in powers of two

  __device__ explicit AttentionShape(const AttentionArguments& a, int padded)
      : page_stride(static_cast<int64_t>(a.cache.num_kv_heads) * 2 * PageElements(padded)),
        group(a.num_heads / a.cache.num_kv_heads),
        scale(kLog2E * rsqrtf(static_cast<float>(a.cache.head_dim))) {}
};

// What one warp knows of its columns: lane 4g + t holds columns 2t and 2t + 1 of
// scores and sums, and column g of the queries.
template <int kDim, int kFragments>
struct WarpColumns {
  static constexpr int kSteps = kDim / 16;
  uint32_t query[kFragments][kSteps][2];
  float out[kFragments][kSteps][4];
  float largest[kFragments][2];
  float sum[kFragments][2];
  int last[kFragments][2];  // position that the column sees last; -1 = no column

  __device__ void Clear() {
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        largest[f][c] = -INFINITY;
        sum[f][c] = 0;
      }
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) out[f][s][i] = 0;
      }
    }
  }

  // `from`: a padded head, or null for a column that is not there.
  __device__ void LoadQuery(int f, const Half* from, int t) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      uint2 pair = make_uint2(0, 0);
      if (from != nullptr) pair = *reinterpret_cast<const uint2*>(from + s * 16 + t * 4);
      query[f][s][0] = pair.x;
      query[f][s][1] = pair.y;
    }
  }

  // One page of keys and values, whose first token has this position.
  __device__ void Attend(const Half* page, int first, float scale, int lane) {
    const uint4* const keys = reinterpret_cast<const uint4*>(page) + lane;
    const uint4* const values = keys + PageElements(kDim) / 8;
    uint4 key[kSteps];
    uint4 value[kSteps];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) key[s] = keys[s * 32];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) value[s] = values[s * 32];
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      float score[4] = {0, 0, 0, 0};
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        Multiply(score, key[s].x, key[s].z, key[s].y, key[s].w, query[f][s][0], query[f][s][1]);
      }
      const uint2 weights = Softmax(f, score, first, scale, lane);
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        Multiply(out[f][s], value[s].x, value[s].z, value[s].y, value[s].w, weights.x, weights.y);
      }
    }
  }

  // Scores into weights, as the right operand of the sums; rescales these.
  __device__ uint2 Softmax(int f, float (&score)[4], int first, float scale, int lane) {
    const int group = lane / 4;
    const int token = first + group / 2 * 4 + group % 2;
    float rescale[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      if (token > last[f][c]) score[c] = -INFINITY;
      if (token + 2 > last[f][c]) score[c + 2] = -INFINITY;
      float top = fmaxf(score[c], score[c + 2]);
#pragma unroll
      for (unsigned step = 4; step < kWarp; step *= 2) {
        top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
      }
      top = fmaxf(top * scale, largest[f][c]);
      const float safe = top == -INFINITY ? 0.0F : top;
      rescale[c] = exp2f(largest[f][c] - safe);
      largest[f][c] = top;
      score[c] = exp2f(score[c] * scale - safe);
      score[c + 2] = exp2f(score[c + 2] * scale - safe);
      sum[f][c] = sum[f][c] * rescale[c] + score[c] + score[c + 2];
    }
    if (__any_sync(kAllLanes, rescale[0] != 1.0F || rescale[1] != 1.0F)) {
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) out[f][s][i] *= rescale[i % 2];
      }
    }
    return make_uint2(Transpose(PackHalves(score[0], score[1])),
                      Transpose(PackHalves(score[2], score[3])));
  }

  // Adds the lanes' parts of the sums.
  __device__ void JoinSums() {
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
#pragma unroll
        for (unsigned step = 4; step < kWarp; step *= 2) {
          sum[f][c] += __shfl_xor_sync(kAllLanes, sum[f][c], step);
        }
      }
    }
  }
};

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

// Sums of several warps, or of several parts of a context, for one column.
struct Parts {
  float largest = -INFINITY;
  float sum = 0;
  float out = 0;

  __device__ void Add(float part_largest, float part_sum, float part_out) {
    if (part_largest == -INFINITY) return;
    const float top = fmaxf(largest, part_largest);
    const float mine = exp2f(largest - top);
    const float theirs = exp2f(part_largest - top);
    sum = sum * mine + part_sum * theirs;
    out = out * mine + part_out * theirs;
    largest = top;
  }
};

template <int kDim, int kWarps>
struct DecodeShared {
  float out[kWarps][kColumns][kDim];
  float largest[kWarps][kColumns];
  float sum[kWarps][kColumns];
  __align__(16) Half queries[kColumns][kDim];
  bool is_last;

  __device__ void Store(const WarpColumns<kDim, 1>& columns, int warp, int lane) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = lane % 4 * 2 + c;
#pragma unroll
      for (int s = 0; s < kDim / 16; ++s) {
        out[warp][column][s * 16 + lane / 4] = columns.out[0][s][c];
        out[warp][column][s * 16 + lane / 4 + 8] = columns.out[0][s][c + 2];
      }
      if (lane / 4 != 0) continue;
      largest[warp][column] = columns.largest[0][c];
      sum[warp][column] = columns.sum[0][c];
    }
  }
  // Turns the group's queries; with `writes`, key and value go into the cache.
  __device__ void Rotate(const RotateArguments& a, int64_t row, int kv_head, int group, bool writes,
                         int warp, int lane) {
    for (int task = warp; task < group + (writes ? 2 : 0); task += kWarps) {
      const bool is_query = task < group;
      const int other = a.num_heads + (task - group) * a.cache.num_kv_heads + kv_head;
      const int head = is_query ? kv_head * group + task : other;
      HeadPairs pairs;
      pairs.LoadTurned(a, row, head, lane);
      if (!is_query) {
        pairs.StoreInCache<Half>(a, row, head, lane);
        continue;
      }
      for (int d = a.cache.head_dim + lane; d < kDim; d += 32)
        queries[task][d] = FromFloat<Half>(0);
      pairs.Store(queries[task], a.cache.head_dim / 2, lane, [](int d) { return d; });
    }
    __syncthreads();
  }
  __device__ Parts Join(int column, int dim) const {
    Parts parts;
    for (int warp = 0; warp < kWarps; ++warp) {
      parts.Add(largest[warp][column], sum[warp][column], out[warp][column][dim]);
    }
    return parts;
  }
};

// Grid: units of a key/value head with at most eight heads, splits, rows.
template <int kDim, int kWarps, bool kRotates>
__global__ void __launch_bounds__(kWarps * 32)
    DecodeAttentionKernel(AttentionArguments a, RotateArguments rotate, const int32_t* which,
                          DecodeSplits splits) {
  __shared__ DecodeShared<kDim, kWarps> shared;
  ReleaseSuccessor();
  // Tables and all but the newest keys were there before this pass's kernels.
  const AttentionShape shape(a, kDim);
  const int units = (shape.group + kColumns - 1) / kColumns;
  const int kv_head = static_cast<int>(blockIdx.x) / units;
  const int first_head = kv_head * shape.group + static_cast<int>(blockIdx.x) % units * kColumns;
  const int num_heads = min(kColumns, (kv_head + 1) * shape.group - first_head);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int64_t row = which[blockIdx.z];
  const int position = a.rows.positions[row];
  const int num_pages = position / kPageTokens + 1;
  const int split_pages =
      max(kMinSplitPages, (num_pages + splits.num_splits - 1) / splits.num_splits);
  const int num_splits = (num_pages + split_pages - 1) / split_pages;
  const int split = static_cast<int>(blockIdx.y);
  if (split >= num_splits) return;
  WaitForPredecessor();

  WarpColumns<kDim, 1> columns;
  columns.Clear();
  const Half* queries =
      static_cast<const Half*>(a.queries) + (row * a.num_heads + first_head) * kDim;
  if constexpr (kRotates) {
    shared.Rotate(rotate, row, kv_head, shape.group, split == num_splits - 1, warp, lane);
    queries = &shared.queries[0][0];
  }
  columns.LoadQuery(0, lane / 4 < num_heads ? queries + lane / 4 * kDim : nullptr, lane % 4);
  columns.last[0][0] = columns.last[0][1] = position;
  const Half* const cache = static_cast<const Half*>(a.cache.at) + kv_head * 2 * PageElements(kDim);
  const int32_t* const blocks = a.rows.blocks + a.rows.tables[row];
  const int end = min(num_pages, (split + 1) * split_pages);
  for (int page = split * split_pages + warp; page < end; page += kWarps) {
    columns.Attend(cache + blocks[page] * shape.page_stride, page * kPageTokens, shape.scale, lane);
  }
  columns.JoinSums();
  shared.Store(columns, warp, lane);
  __syncthreads();

  Half* const out = static_cast<Half*>(a.out) + row * a.out_stride + first_head * a.cache.head_dim;
  // Partial results of a column: its splits one after the other, each kDim sums
  // and then the largest score and the sum of weights.
  constexpr int kPart = kDim + 2;
  float* const partial =
      splits.partial +
      (static_cast<int64_t>(blockIdx.z) * a.num_heads + first_head) * splits.num_splits * kPart;
  for (int i = static_cast<int>(threadIdx.x); i < num_heads * kDim; i += kWarps * 32) {
    const int column = i / kDim;
    const int dim = i % kDim;
    const Parts parts = shared.Join(column, dim);
    if (num_splits == 1) {
      if (dim < a.cache.head_dim) {
        out[column * a.cache.head_dim + dim] = FromFloat<Half>(parts.out / parts.sum);
      }
      continue;
    }
    float* const part = partial + (column * splits.num_splits + split) * kPart;
    part[dim] = parts.out;
    if (dim == 0) part[kDim] = parts.largest;
    if (dim == 1) part[kDim + 1] = parts.sum;
  }
  if (num_splits == 1) return;

  // The last split to finish joins them all.
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    int32_t* const finished = splits.finished + blockIdx.z * gridDim.x + blockIdx.x;
    shared.is_last = atomicAdd(finished, 1) == num_splits - 1;
    if (shared.is_last) *finished = 0;
  }
  __syncthreads();
  if (!shared.is_last) return;
  __threadfence();
  // A warp for a column: its lanes first hold the splits' weights, then dimensions.
  for (int column = warp; column < num_heads; column += kWarps) {
    const float* const part = partial + column * splits.num_splits * kPart;
    const bool is_there = lane < num_splits;
    const float largest = is_there ? __ldcg(part + lane * kPart + kDim) : -INFINITY;
    const float sum = is_there ? __ldcg(part + lane * kPart + kDim + 1) : 0.0F;
    const float weight = exp2f(largest - WarpMax(largest));
    const float share = weight / WarpSum(weight * sum);
    float joined[(kDim + 31) / 32] = {};
#pragma unroll 4
    for (int s = 0; s < num_splits; ++s) {
      const float mine = __shfl_sync(kAllLanes, share, s);
#pragma unroll
      for (int i = 0; i < (kDim + 31) / 32; ++i) {
        const int dim = i * 32 + lane;
        if (dim < kDim) joined[i] += mine * __ldcg(part + s * kPart + dim);
      }
    }
#pragma unroll
    for (int i = 0; i < (kDim + 31) / 32; ++i) {
      const int dim = i * 32 + lane;
      if (dim < a.cache.head_dim) {
        out[column * a.cache.head_dim + dim] = FromFloat<Half>(joined[i]);
      }
    }
  }
}

unsigned Count(int64_t n) {
  return static_cast<unsigned>(n);
}

}  // namespace

int DecodeSplitsFor(int64_t num_rows, int num_kv_heads, int num_processors) {
  // Four blocks for each processor, where the context is long enough for that.
  const int64_t units = num_rows * num_kv_heads;
  const int64_t wanted = (4 * static_cast<int64_t>(num_processors) + units - 1) / units;
  return static_cast<int>(wanted < kMaxSplits ? wanted : kMaxSplits);
}

int64_t DecodePartialFloats(int64_t num_rows, int num_heads, int head_dim, int num_splits) {
  return num_rows * num_heads * num_splits * (PaddedHeadDim(head_dim) + 2);
}

namespace {

template <int kWarps, bool kRotates>
void LaunchDecode(const AttentionArguments& a, const RotateArguments& rotate, const int32_t* which,
                  int64_t num_rows, const DecodeSplits& splits, cudaStream_t stream) {
  const int group = a.num_heads / a.cache.num_kv_heads;
  const int units = (group + kColumns - 1) / kColumns * a.cache.num_kv_heads;
  const dim3 grid(Count(units), Count(splits.num_splits), Count(num_rows));
  const auto kernel = [&] {
    switch (PaddedHeadDim(a.cache.head_dim)) {
      case 16:
        return DecodeAttentionKernel<16, kWarps, kRotates>;
      case 32:
        return DecodeAttentionKernel<32, kWarps, kRotates>;
      case 64:
        return DecodeAttentionKernel<64, kWarps, kRotates>;
      default:
        return DecodeAttentionKernel<128, kWarps, kRotates>;
    }
  }();
  Launch(kernel, grid, kWarps * 32, 0, stream, a, rotate, which, splits);
}

}  // namespace

void DecodeAttention(const AttentionArguments& a, const int32_t* which, int64_t num_rows,
                     const DecodeSplits& splits, cudaStream_t stream) {
  const auto launch =
      splits.num_splits > 1 ? LaunchDecode<kManyWarps, false> : LaunchDecode<kFewWarps, false>;
  launch(a, {}, which, num_rows, splits, stream);
}

bool CanRotateAndAttend(int num_heads, int num_kv_heads) {
  return num_heads / num_kv_heads <= kColumns;
}

void RotateAndAttend(const AttentionArguments& a, const RotateArguments& rotate,
                     const int32_t* which, int64_t num_rows, const DecodeSplits& splits,
                     cudaStream_t stream) {
  const auto launch =
      splits.num_splits > 1 ? LaunchDecode<kManyWarps, true> : LaunchDecode<kFewWarps, true>;
  launch(a, rotate, which, num_rows, splits, stream);
}

void TileAttention(const AttentionArguments& a, const QueryTile* tiles, int64_t num_tiles,
                   cudaStream_t stream) {
  const dim3 grid(Count(num_tiles), Count(a.cache.num_kv_heads));
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
