// Shared by the kernels that compute logits results.
#ifndef PACE_MODEL_CUDA_DECODE_LOGITS_CUH_
#define PACE_MODEL_CUDA_DECODE_LOGITS_CUH_

#include "model/cuda/decode/logits_kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {

// Logits of one piece of a row.
inline constexpr int kPieceLogits = 4096;

struct Piece {
  float largest;
  float sum;  // of exp((logit - largest) * factor)
  int token;  // the first of the largest
};

__device__ inline bool IsTruncated(const LogitsRequest& q) {
  return q.target < 0 && q.greedy == 0 && (q.top_k > 0 || q.top_p < 1 || q.min_p > 0);
}

// The softmax of one row. Whole warps make it; every thread has the same.
struct RowSums {
  float largest = -INFINITY;
  int token = 0x7FFFFFFF;
  float factor;
  double scale;
  double sum = 0;

  __device__ RowSums(const Piece* pieces, int num_pieces, const LogitsRequest& request)
      : factor(request.factor), scale(request.scale) {
    const auto lane = static_cast<int>(threadIdx.x % kWarp);
    for (int i = lane; i < num_pieces; i += 32) Take(pieces[i].largest, pieces[i].token);
    for (unsigned step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, largest, step);
      Take(other, __shfl_xor_sync(kAllLanes, token, step));
    }
    for (int i = lane; i < num_pieces; i += 32) sum += Term(pieces[i]);
    for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
  }
  // Of the largest logit; 0 where there is nothing but NaN.
  __device__ int Greedy(int64_t vocab_size) const { return token < vocab_size ? token : 0; }
  // The first of the largest.
  __device__ void Take(float other, int other_token) {
    if (!(other > largest || (other == largest && other_token < token))) return;
    largest = other;
    token = other_token;
  }
  __device__ double Term(const Piece& piece) const {
    return static_cast<double>(piece.sum * expf((piece.largest - largest) * factor));
  }
  __device__ float Term(float logit) const { return expf((logit - largest) * factor); }
  __device__ float LogProb(float logit) const { return LogProbOf(logit, sum); }
  __device__ float LogProbOf(float logit, double of) const {
    return static_cast<float>((static_cast<double>(logit) - largest) / scale - log(of));
  }
};

// Computes the results of those requests that are truncated.
void ComputeTruncatedResults(const LogitsArguments& arguments, const Piece* pieces, int num_pieces,
                             cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_LOGITS_CUH_
