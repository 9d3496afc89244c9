// AdamW over named float32 parameters, with LibTorch's fused kernel, or ours on a GPU.
//
// Decoupled weight decay, bias-corrected moments, as Loshchilov and Hutter;
// adamw_reference.h is the same in plain C++. The state is tensors by name, so
// that a checkpoint can hold it.
// Thread-safety: none.
#ifndef PACE_TRAIN_ADAMW_H_
#define PACE_TRAIN_ADAMW_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/train_options.h"
#include "core/status.h"
#include "train/trainer_options.h"

namespace pace {

using NamedTensors = std::map<std::string, at::Tensor>;

class AdamW {
 public:
  // Shares the parameters: updates happen in place.
  AdamW(const NamedTensors& parameters, const AdamWOptions& options);

  // One update by the parameters' .grad() times `factor`, which may change them; a parameter
  // without one stays.
  void Step(double learning_rate, double factor = 1);

  int64_t num_updates() const { return num_updates_; }
  // First and second moments, as NAME.m and NAME.v.
  NamedTensors State() const;
  // Copies a state back; every tensor must be there in its shape.
  Status Restore(const NamedTensors& state, int64_t num_updates);

 private:
  AdamWOptions options_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> first_;
  std::vector<at::Tensor> second_;
  std::vector<at::Tensor> counts_;  // updates so far, as the kernel wants them
  int64_t num_updates_ = 0;
};

// The Euclidean norm over all gradients, and the factor that brings it down to `max_norm` where it
// is larger (0 = never; 1 where it is not finite).
double GradientNorm(const NamedTensors& parameters);
double GradientFactor(double norm, double max_norm);
// Adds the gradients of `from` to those of the same names in `to`.
void AddGradients(const NamedTensors& from, const NamedTensors& to);
void FreeGradients(const NamedTensors& parameters);

}  // namespace pace

#endif  // PACE_TRAIN_ADAMW_H_
