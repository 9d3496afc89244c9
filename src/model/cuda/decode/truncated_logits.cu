// Draws from distributions that top-k, top-p and min-p cut.
//
// One block per request, no sort: the k-th largest logit and the term at which
// top-p ends are found digit by digit, eight bits at a time, over the bits of
// the floats (which order as the floats do). Terms are summed as whole multiples
// of 2^-40, so that the order of additions does not matter.
#include "model/cuda/decode/logits.cuh"

namespace pace::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr double kUnit = 0x1.0p40;

// Rises with the float.
__device__ uint32_t Ordered(float x) {
  const uint32_t bits = __float_as_uint(x);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

struct Selection {
  unsigned long long weights[256];  // by digit
  unsigned long long above;         // weight of what lies above
  uint32_t prefix;
  int ties[kWarps];
  double sums[kWarps];
  int token;
};

// The largest key such that keys from it on weigh at least `wanted`; s.above is
// then what keys above it weigh. weight(i) and key(i) of token i; a weight of 0
// leaves it out.
template <typename Key, typename Weight>
__device__ uint32_t Select(Selection& s, int n, double wanted, Key key, Weight weight) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    s.prefix = 0;
    s.above = 0;
  }
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (thread < 256) s.weights[thread] = 0;
    __syncthreads();
    const uint32_t prefix = s.prefix;
    for (int i = thread; i < n; i += kThreads) {
      const uint32_t k = key(i);
      if (shift < 24 && k >> (shift + 8) != prefix >> (shift + 8)) continue;
      const unsigned long long w = weight(i);
      if (w != 0) atomicAdd(&s.weights[k >> shift & 0xFFU], w);
    }
    __syncthreads();
    if (thread == 0) {
      int digit = 255;
      int lowest = 255;  // with any weight
      for (; digit >= 0; --digit) {
        if (s.weights[digit] == 0) continue;
        lowest = digit;
        if (static_cast<double>(s.above + s.weights[digit]) >= wanted) break;
        s.above += s.weights[digit];
      }
      // Where rounding leaves too little, all is kept: the lowest digit there is.
      if (digit < 0) {
        digit = lowest;
        s.above -= s.weights[lowest];
      }
      s.prefix = prefix | static_cast<uint32_t>(digit) << shift;
    }
    __syncthreads();
  }
  return s.prefix;
}

// A warp's tokens lie in a row; ties are kept in the order of ids.
struct Kept {
  uint32_t least_logit = 0;   // ordered bits
  uint32_t least_term = 0;    // bits
  int num_ties = 0x7FFFFFFF;  // of least_term that are kept
  float min_term = 0;

  __device__ bool IsTie(uint32_t logit, float term) const {
    return logit >= least_logit && __float_as_uint(term) == least_term;
  }
  __device__ bool Has(uint32_t logit, float term, int rank) const {
    const uint32_t bits = __float_as_uint(term);
    if (logit < least_logit || bits < least_term || !(term >= min_term)) return false;
    return bits > least_term || rank < num_ties;
  }
};

__device__ Kept FindKept(Selection& s, const float* logits, int n, const RowSums& row,
                         const LogitsRequest& request) {
  Kept kept;
  kept.min_term = request.min_p;
  const auto logit = [&](int i) { return Ordered(logits[i]); };
  if (request.top_k > 0 && request.top_k < n) {
    kept.least_logit = Select(s, n, request.top_k, logit, [](int) { return 1ULL; });
  }
  if (request.top_p >= 1) return kept;
  const auto term = [&](int i) { return __float_as_uint(row.Term(logits[i])); };
  const auto weight = [&](int i) -> unsigned long long {
    if (logit(i) < kept.least_logit) return 0;
    return static_cast<unsigned long long>(static_cast<double>(row.Term(logits[i])) * kUnit);
  };
  __syncthreads();
  // The weight of all that is left.
  if (threadIdx.x == 0) s.weights[0] = 0;
  __syncthreads();
  unsigned long long mine = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) mine += weight(i);
  atomicAdd(&s.weights[0], mine);
  __syncthreads();
  const double wanted = request.top_p * static_cast<double>(s.weights[0]);
  __syncthreads();
  kept.least_term = Select(s, n, wanted, term, weight);
  const double one = static_cast<double>(__uint_as_float(kept.least_term)) * kUnit;
  const double needed = (wanted - static_cast<double>(s.above)) / floor(fmax(one, 1.0));
  kept.num_ties = static_cast<int>(fmin(fmax(ceil(needed), 1.0), 2e9));
  return kept;
}

__global__ void __launch_bounds__(kThreads)
    TruncatedKernel(LogitsArguments a, const Piece* all_pieces, int num_pieces) {
  __shared__ Selection s;
  ReleaseSuccessor();
  WaitForPredecessor();
  const LogitsRequest request = a.requests[blockIdx.x];
  if (!IsTruncated(request)) return;
  const int n = static_cast<int>(a.vocab_size);
  const float* const logits = a.logits + request.row * a.stride;
  const RowSums row(all_pieces + static_cast<int64_t>(blockIdx.x) * num_pieces, num_pieces,
                    request);
  const Kept kept = FindKept(s, logits, n, row, request);

  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int share = (n + kThreads - 1) / kThreads * 32;  // tokens of a warp
  const int begin = warp * share;
  const int end = min(n, begin + share);
  int ties = 0;
  for (int i = begin + lane; i < end; i += 32) {
    ties += kept.IsTie(Ordered(logits[i]), row.Term(logits[i])) ? 1 : 0;
  }
  ties = __reduce_add_sync(kAllLanes, ties);
  __syncthreads();
  if (lane == 0) s.ties[warp] = ties;
  if (threadIdx.x == 0) s.token = -1;
  __syncthreads();
  int first_rank = 0;
  for (int w = 0; w < warp; ++w) first_rank += s.ties[w];

  // visit(token, term) for every kept token of this lane, 32 tokens at a time.
  const auto walk = [&](auto visit) {
    int rank = first_rank;
    for (int base = begin; base < end; base += 32) {
      const int i = base + lane;
      const uint32_t bits = i < end ? Ordered(logits[i]) : 0;
      const float term = i < end ? row.Term(logits[i]) : 0.0F;
      const bool is_tie = i < end && kept.IsTie(bits, term);
      const unsigned mask = __ballot_sync(kAllLanes, is_tie);
      const int mine = rank + __popc(mask & ((1U << lane) - 1));
      const bool is_kept = i < end && kept.Has(bits, term, mine);
      rank += __popc(mask);
      if (visit(i, is_kept ? static_cast<double>(term) : 0.0)) return;
    }
  };
  double sum = 0;
  walk([&](int, double term) {
    sum += term;
    return false;
  });
  for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
  if (lane == 0) s.sums[warp] = sum;
  __syncthreads();
  double total = 0;
  double before = 0;
  int last = 0;  // warp with terms
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) before = total;
    total += s.sums[w];
    if (s.sums[w] > 0) last = w;
  }
  const double target = request.uniform * total;
  const bool is_mine = sum > 0 && before <= target && (before + sum > target || warp == last);
  if (is_mine) {
    double running = before;
    int latest = -1;
    walk([&](int i, double term) {
      double upto = term;
      for (unsigned step = 1; step < 32; step *= 2) {
        const double other = __shfl_up_sync(kAllLanes, upto, step);
        if (lane >= static_cast<int>(step)) upto += other;
      }
      const unsigned has = __ballot_sync(kAllLanes, term > 0);
      const unsigned past = __ballot_sync(kAllLanes, term > 0 && running + upto > target);
      running += __shfl_sync(kAllLanes, upto, 31);
      if (past != 0) {
        latest = i - lane + __ffs(static_cast<int>(past)) - 1;
        return true;
      }
      if (has != 0) latest = i - lane + 31 - __clz(static_cast<int>(has));
      return false;
    });
    if (lane == 0) s.token = latest;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const int token = s.token < 0 ? row.Greedy(a.vocab_size) : s.token;
  a.results[blockIdx.x] = {.token = token,
                           .logprob = row.LogProb(logits[token]),
                           .sampled_logprob = row.LogProbOf(logits[token], total)};
}

}  // namespace

void ComputeTruncatedResults(const LogitsArguments& a, const Piece* pieces, int num_pieces,
                             cudaStream_t stream) {
  Launch(TruncatedKernel, static_cast<unsigned>(a.num_requests), kThreads, 0, stream, a, pieces,
         num_pieces);
}

}  // namespace pace::cuda
