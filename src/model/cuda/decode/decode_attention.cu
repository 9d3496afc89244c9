// Attention of decode rows: a context is split over blocks of threads, and the last one
// to finish joins the parts.
#include "model/cuda/decode/attention_fragments.cuh"
#include "model/cuda/head_pairs.cuh"

namespace pace::cuda {
namespace {

// Warps that share a context: more where few contexts leave processors idle.
constexpr int kFewWarps = 4;
constexpr int kManyWarps = 8;
// Pages that are worth a block of their own.
constexpr int kMinSplitPages = 2 * kManyWarps;
constexpr int kMaxSplits = 32;

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

}  // namespace pace::cuda
