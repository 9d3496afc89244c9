// Log-probability and entropy of next tokens, without holding all logits.
//
// Logits exist for one chunk of rows at a time and are computed again in the
// backward pass, so memory does not grow with rows times vocabulary. Sums are
// float32 at least, whatever the dtype of the network.
//
//   auto [logprobs_N, entropy_N] = TokenLogProbs(hidden_NH, head_VH, targets_N, 1.0);
//   at::autograd backward: gradients of both reach hidden and head.
//
// Thread-safety: pure, as LibTorch's operations are.
#ifndef PACE_TRAIN_TOKEN_LOGPROBS_H_
#define PACE_TRAIN_TOKEN_LOGPROBS_H_

#include <ATen/ATen.h>

namespace pace {

struct TokenLogProbsResult {
  at::Tensor logprobs_N;  // float32, or double for a double network
  at::Tensor entropy_N;   // of softmax(logits / temperature); without gradient unless asked
};

// log softmax(hidden head^T / temperature)[target] of each row.
// REQUIRES: temperature > 0; targets_N int64, inside the vocabulary
TokenLogProbsResult TokenLogProbs(const at::Tensor& hidden_NH, const at::Tensor& head_VH,
                                  const at::Tensor& targets_N, double temperature);

}  // namespace pace

#endif  // PACE_TRAIN_TOKEN_LOGPROBS_H_
