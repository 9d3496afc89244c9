// What the kernels of answers share.
#ifndef PACE_MODEL_CUDA_ANSWERS_CUH_
#define PACE_MODEL_CUDA_ANSWERS_CUH_

#include "model/cuda/answer_kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {

// Logits of one piece of a row.
inline constexpr int kPieceLogits = 4096;

struct Piece {
  float largest;
  float sum;  // of exp((logit - largest) * factor)
  int token;  // the first of the largest
};

__device__ inline bool IsTruncated(const Question& q) {
  return q.target < 0 && q.greedy == 0 && (q.top_k > 0 || q.top_p < 1 || q.min_p > 0);
}

// The softmax of one row. Every thread computes the same.
struct RowSums {
  float largest = -INFINITY;
  int token = 0;
  float factor;
  double scale;
  double sum = 0;

  __device__ RowSums(const Piece* pieces, int num_pieces, const Question& question)
      : factor(question.factor), scale(question.scale) {
    for (int i = 0; i < num_pieces; ++i) {
      if (!(pieces[i].largest > largest)) continue;
      largest = pieces[i].largest;
      token = pieces[i].token;
    }
    for (int i = 0; i < num_pieces; ++i) sum += Term(pieces[i]);
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

// Answers the questions that IsTruncated, and no other.
void AnswerTruncated(const AnswerArguments& arguments, const Piece* pieces, int num_pieces,
                     cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_ANSWERS_CUH_
