// ValueHead: what a policy's hidden states say about the reward still to come.
//
//   V = weight . hidden + bias     of the row that predicts a token
//
// so V is the value before that token. Both begin at 0: no seed, and the first
// advantages are those without a head. It has an AdamW of its own, and one set of
// gradients per thread.
//
//   at::Tensor values_N = head.Values(thread, hidden_NH);
//   ... backward ...
//   PACE_ASSIGN_OR_RETURN(const double norm, head.GatherGradients());
//   head.Step(rate, GradientFactor(norm, max_norm));
//
// Thread-safety: Values may run side by side for different threads.
#ifndef PACE_TRAIN_VALUE_HEAD_H_
#define PACE_TRAIN_VALUE_HEAD_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "ranks/communicator.h"
#include "train/adamw.h"

namespace pace {

class ValueHead {
 public:
  // `tensors`: device and dtype, float32 or double.
  ValueHead(int64_t hidden_size, const at::TensorOptions& tensors, const AdamWOptions& adamw,
            int64_t num_threads);

  // V of each row. Differentiable in the rows too: detach them where the layers
  // below are not to learn from it.
  at::Tensor Values(size_t thread, const at::Tensor& hidden_NH) const;

  void ZeroGradients();
  // The threads' gradients as one; returns their norm.
  // `ranks` may be null; otherwise it is the sum over all of them.
  Result<double> GatherGradients(Communicator* ranks = nullptr);
  // REQUIRES: gathered
  void Step(double learning_rate, double factor) { optimizer_.Step(learning_rate, factor); }

  // value_head.{weight, bias}, shared, and their moments NAME.m and NAME.v.
  NamedTensors State() const;
  Status Restore(const NamedTensors& state, int64_t num_updates);

 private:
  std::vector<NamedTensors> copies_;  // one per thread; one storage, own gradients
  AdamW optimizer_;                   // of the first
};

}  // namespace pace

#endif  // PACE_TRAIN_VALUE_HEAD_H_
