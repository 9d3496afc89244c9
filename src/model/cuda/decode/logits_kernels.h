// Log-probabilities and draws over the vocabulary. See kernels.h.
#ifndef PACE_MODEL_CUDA_DECODE_LOGITS_KERNELS_H_
#define PACE_MODEL_CUDA_DECODE_LOGITS_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace pace::cuda {

// A sample or a score of one row of logits.
struct LogitsRequest {
  int32_t row = 0;      // of the logits
  int32_t target = -1;  // the token to score; -1: sample one
  int32_t greedy = 0;
  int32_t top_k = 0;  // 0, 1 and 0: nothing is cut
  double top_p = 1;
  float min_p = 0;
  float factor = 1;  // 1 / scale
  double scale = 1;
  double uniform = 0;
};
struct LogitsResult {
  int32_t token = 0;
  float logprob = 0;
  float sampled_logprob = 0;
};
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 20;
// `pieces`: LogitsPieceFloats. Results are defined in src/model/sampling.h.
int64_t LogitsPieceFloats(int64_t num_requests, int64_t vocab_size);
struct LogitsArguments {
  const float* logits = nullptr;
  int64_t stride = 0;  // a multiple of 4
  int64_t vocab_size = 0;
  const LogitsRequest* requests = nullptr;
  int64_t num_requests = 0;
  bool any_truncated = false;
  float* pieces = nullptr;
  LogitsResult* results = nullptr;
};
void ComputeLogitsResults(const LogitsArguments& arguments, cudaStream_t stream);

// Sets each row's token to the one just sampled: that of the result which its source names;
// kOwnToken leaves the row as it is. After a stop token nothing needs to be computed: the row
// becomes one of the spare block, whose block table is the first.
inline constexpr int32_t kOwnToken = -1;
struct AdvanceArguments {
  const int32_t* sources = nullptr;
  const LogitsResult* results = nullptr;
  const int32_t* stops = nullptr;
  int64_t num_stops = 0;
  int64_t num_rows = 0;
  int32_t* tokens = nullptr;
  int32_t* positions = nullptr;
  int32_t* tables = nullptr;
};
void Advance(const AdvanceArguments& arguments, cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_LOGITS_KERNELS_H_
