// Head: from last hidden states to samples and scores.
//
// Logits are computed for the requested rows alone, a bounded number at a time, so their memory
// does not depend on the pass.
#ifndef PACE_MODEL_CPU_HEAD_H_
#define PACE_MODEL_CPU_HEAD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/cpu/activations.h"
#include "model/cpu/gemm.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/thread_pool.h"
#include "model/decoder.h"

namespace pace {

class Head {
 public:
  Head(const ModelConfig& config, bool is_bf16, const Kernels& kernels, ThreadPool& threads);

  // `hidden` has a row per token of the pass.
  PassResult Run(const Pass& pass, const Activations& hidden, const PackedMatrix& matrix,
                 Gemm& gemm);

 private:
  // One sample or score.
  struct LogitsRequest {
    int64_t row = 0;
    bool is_sample = false;
    size_t index = 0;  // in pass.samples or pass.scores
  };

  void CollectRequests(const Pass& pass);
  // Logits of rows_[begin, end).
  void ComputeLogits(const Activations& hidden, const PackedMatrix& matrix, size_t begin,
                     size_t end, Gemm& gemm);
  void Compute(const Pass& pass, const LogitsRequest& request, std::span<const float> logits,
               std::vector<float>& scratch, PassResult& result) const;

  const int64_t vocab_size_;
  const Kernels& kernels_;
  ThreadPool& threads_;
  std::vector<LogitsRequest> requests_;  // by row
  std::vector<int64_t> rows_;            // requested, rising
  std::vector<size_t> first_request_;    // of each of rows_, and the end
  Activations requested_;
  Activations logits_;
  std::vector<std::vector<float>> scratch_;  // one per worker
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_HEAD_H_
