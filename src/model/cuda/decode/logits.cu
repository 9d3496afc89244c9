// Log-probabilities and draws over the vocabulary, as src/model/sampling.h
// defines them.
//
// Every request's row of logits is cut into pieces, whose largest logit and sum
// of terms are found side by side; a second kernel joins them and looks into the
// one piece where the draw falls. Questions with a truncated distribution go to
// truncated_logits.cu.
#include "model/cuda/decode/logits.cuh"

namespace pace::cuda {
namespace {

constexpr int kPieceThreads = 256;
constexpr int kThreadLogits = kPieceLogits / kPieceThreads;
static_assert(kThreadLogits == 16);
static_assert(kMaxVocabulary <= int64_t{kPieceThreads} * kPieceLogits);

__global__ void PieceKernel(LogitsArguments a, Piece* pieces) {
  __shared__ float tops[kPieceThreads / 32];
  __shared__ int tokens[kPieceThreads / 32];
  __shared__ float scratch[kWarp];
  ReleaseSuccessor();
  WaitForPredecessor();
  const LogitsRequest request = a.requests[blockIdx.y];
  const float* const logits = a.logits + request.row * a.stride;
  const int begin = static_cast<int>(blockIdx.x) * kPieceLogits;
  const int vocab_size = static_cast<int>(a.vocab_size);
  float values[kThreadLogits];
  float top = -INFINITY;
  int token = vocab_size;
#pragma unroll
  for (int i = 0; i < kThreadLogits; ++i) {
    const int at = begin + i * kPieceThreads + static_cast<int>(threadIdx.x);
    values[i] = at < vocab_size ? logits[at] : -INFINITY;
    if (values[i] > top) {
      top = values[i];
      token = at;
    }
  }
  const auto take = [&](float other, int other_token) {
    if (other > top || (other == top && other_token < token)) {
      top = other;
      token = other_token;
    }
  };
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, top, step);
    take(other, __shfl_xor_sync(kAllLanes, token, step));
  }
  if (threadIdx.x % kWarp == 0) {
    tops[threadIdx.x / kWarp] = top;
    tokens[threadIdx.x / kWarp] = token;
  }
  __syncthreads();
  for (int w = 0; w < kPieceThreads / 32; ++w) take(tops[w], tokens[w]);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kThreadLogits; ++i) sum += expf((values[i] - top) * request.factor);
  sum = BlockSum(sum, scratch);
  if (threadIdx.x != 0) return;
  pieces[blockIdx.y * gridDim.x + blockIdx.x] = {
      .largest = top, .sum = top == -INFINITY ? 0.0F : sum, .token = token};
}

// The piece in which the running sum of `terms` passes `target`, and the sum
// before it; the last piece with terms where rounding leaves none.
__device__ int FindPiece(const double* terms, int num_pieces, double target, double& before) {
  double sum = 0;
  int found = 0;
  for (int i = 0; i < num_pieces; ++i) {
    const double next = terms[i];
    if (next <= 0) continue;
    found = i;
    before = sum;
    sum += next;
    if (sum > target) break;
  }
  return found;
}

__global__ void ResultKernel(LogitsArguments a, const Piece* all_pieces, int num_pieces) {
  __shared__ double sums[kPieceThreads];
  __shared__ int drawn[2];  // the first token past the target, the last with a term
  ReleaseSuccessor();
  WaitForPredecessor();
  const LogitsRequest request = a.requests[blockIdx.x];
  if (IsTruncated(request)) return;
  const Piece* const pieces = all_pieces + static_cast<int64_t>(blockIdx.x) * num_pieces;
  const float* const logits = a.logits + request.row * a.stride;
  const RowSums row(pieces, num_pieces, request);
  LogitsResult& row_result = a.results[blockIdx.x];
  if (request.target >= 0 || request.greedy != 0) {
    if (threadIdx.x != 0) return;
    const int token = request.target >= 0 ? request.target : row.Greedy(a.vocab_size);
    row_result = {.token = token, .logprob = row.LogProb(logits[token]), .sampled_logprob = 0};
    return;
  }
  const double target = request.uniform * row.sum;
  double before = 0;
  if (static_cast<int>(threadIdx.x) < num_pieces) sums[threadIdx.x] = row.Term(pieces[threadIdx.x]);
  __syncthreads();
  const int piece = FindPiece(sums, num_pieces, target, before);
  __syncthreads();
  // Each thread has sixteen tokens in a row.
  const int begin = piece * kPieceLogits + static_cast<int>(threadIdx.x) * kThreadLogits;
  const int end = min(begin + kThreadLogits, static_cast<int>(a.vocab_size));
  double mine = 0;
  for (int i = begin; i < end; ++i) mine += row.Term(logits[i]);
  sums[threadIdx.x] = mine;
  if (threadIdx.x == 0) {
    drawn[0] = static_cast<int>(a.vocab_size);
    drawn[1] = 0;
  }
  __syncthreads();
  double sum = before;
  for (int i = 0; i < static_cast<int>(threadIdx.x); ++i) sum += sums[i];
  for (int i = begin; i < end; ++i) {
    const double term = row.Term(logits[i]);
    if (!(term > 0)) continue;
    atomicMax(&drawn[1], i);
    sum += term;
    if (sum > target) {
      atomicMin(&drawn[0], i);
      break;
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const int token = drawn[0] < a.vocab_size ? drawn[0] : drawn[1];
  const float logprob = row.LogProb(logits[token]);
  row_result = {.token = token, .logprob = logprob, .sampled_logprob = logprob};
}

int64_t NumPieces(int64_t vocab_size) {
  return (vocab_size + kPieceLogits - 1) / kPieceLogits;
}

}  // namespace

int64_t LogitsPieceFloats(int64_t num_requests, int64_t vocab_size) {
  return num_requests * NumPieces(vocab_size) * static_cast<int64_t>(sizeof(Piece) / sizeof(float));
}

void ComputeLogitsResults(const LogitsArguments& a, cudaStream_t stream) {
  const auto num_pieces = static_cast<unsigned>(NumPieces(a.vocab_size));
  const auto num_requests = static_cast<unsigned>(a.num_requests);
  auto* const pieces = reinterpret_cast<Piece*>(a.pieces);
  Launch(PieceKernel, dim3(num_pieces, num_requests), kPieceThreads, 0, stream, a, pieces);
  Launch(ResultKernel, num_requests, kPieceThreads, 0, stream, a, static_cast<const Piece*>(pieces),
         static_cast<int>(num_pieces));
  if (a.any_truncated) {
    ComputeTruncatedResults(a, pieces, static_cast<int>(num_pieces), stream);
  }
}

}  // namespace pace::cuda
