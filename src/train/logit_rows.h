// Rows of logits: the product that makes them, the scores of one token in each,
// and the gradient back to the logits.
//
// Float32 logits go through kernels of our own in two passes over memory
// (model/gradient, on a GPU model/cuda). Those of a bf16 network are products of
// bf16 summed and kept in float32, where the CPU has tiles and on a GPU. Elsewhere:
// LibTorch's operations.
// Thread-safety: as LibTorch's operations.
#ifndef PACE_TRAIN_LOGIT_ROWS_H_
#define PACE_TRAIN_LOGIT_ROWS_H_

#include <ATen/ATen.h>

#include <cstdint>

namespace pace {

// hidden head^T, some rows at a time, in float32 at least.
class LogitProduct {
 public:
  LogitProduct(const at::Tensor& hidden_NH, const at::Tensor& head_VH);

  // Rows [begin, begin + count). Columns behind the vocabulary may follow in memory.
  at::Tensor Logits(int64_t begin, int64_t count) const;
  // What gradients are multiplied with, in the dtype of the products.
  at::Tensor Hidden(int64_t begin, int64_t count) const {
    return hidden_NH_.narrow(0, begin, count);
  }
  const at::Tensor& head() const { return head_VH_; }

 private:
  at::Tensor hidden_NH_;
  at::Tensor head_VH_;
  int64_t num_columns_ = 0;  // of logits from panels
  at::Tensor panels_;        // of the head, for tiles; undefined: a plain product
  at::Tensor padded_;        // hidden rows as tiles read them
};

// One chunk: a number per row.
struct LogitScores {
  at::Tensor logprobs;
  at::Tensor log_sums;
  at::Tensor entropies;
};
// log softmax(logits / temperature)[target], the logarithm of its denominator,
// and the entropy, written in place.
void ScoreLogits(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                 const LogitScores& scores);

// d_logits in `dtype`; `logits` are used up. Gradients are those of the log-prob
// and of the entropy (undefined: none).
at::Tensor LogitGradients(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                          const LogitScores& scores, const at::Tensor& of_logprob,
                          const at::Tensor& of_entropy, at::ScalarType dtype);

}  // namespace pace

#endif  // PACE_TRAIN_LOGIT_ROWS_H_
