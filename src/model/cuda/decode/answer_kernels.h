// Log-probabilities and draws over the vocabulary. See kernels.h.
#ifndef PACE_MODEL_CUDA_DECODE_ANSWER_KERNELS_H_
#define PACE_MODEL_CUDA_DECODE_ANSWER_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace pace::cuda {

// What is asked about one row of logits.
struct Question {
  int32_t row = 0;      // of the logits
  int32_t target = -1;  // the token to score; -1: draw one
  int32_t greedy = 0;
  int32_t top_k = 0;  // 0, 1 and 0: nothing is cut
  double top_p = 1;
  float min_p = 0;
  float factor = 1;  // 1 / scale
  double scale = 1;
  double uniform = 0;
};
struct Answer {
  int32_t token = 0;
  float logprob = 0;
  float sampled_logprob = 0;
};
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 20;
// `pieces`: AnswerPieceFloats. Answers as src/model/sampling.h defines them.
int64_t AnswerPieceFloats(int64_t num_questions, int64_t vocab_size);
struct AnswerArguments {
  const float* logits = nullptr;
  int64_t stride = 0;  // a multiple of 4
  int64_t vocab_size = 0;
  const Question* questions = nullptr;
  int64_t num_questions = 0;
  bool any_truncated = false;
  float* pieces = nullptr;
  Answer* answers = nullptr;
};
void AnswerQuestions(const AnswerArguments& arguments, cudaStream_t stream);

// Rows go on behind the tokens just drawn: each takes that of the answer which its
// source names, kOwnToken leaves the one it has. Behind a stop there is nothing to
// compute: the row becomes one of the spare block, whose table is the first.
inline constexpr int32_t kOwnToken = -1;
struct AdvanceArguments {
  const int32_t* sources = nullptr;
  const Answer* answers = nullptr;
  const int32_t* stops = nullptr;
  int64_t num_stops = 0;
  int64_t num_rows = 0;
  int32_t* tokens = nullptr;
  int32_t* positions = nullptr;
  int32_t* tables = nullptr;
};
void Advance(const AdvanceArguments& arguments, cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_ANSWER_KERNELS_H_
