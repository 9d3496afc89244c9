// Recomputed: a part of a network whose activations are not kept.
//
// The body runs without gradients; its input alone is kept, and the backward
// pass runs the body again. Memory is that of one body at a time, time that of
// one more forward pass.
//
//   at::Tensor y = Recomputed(x, [layer](const at::Tensor& x, bool again) { ... });
//
// Gradients of the body's own leaves are added to their .grad(), as backward
// does; so torch::autograd::grad does not see them. Thread-safety: as autograd's.
#ifndef PACE_MODEL_TORCH_RECOMPUTE_H_
#define PACE_MODEL_TORCH_RECOMPUTE_H_

#include <ATen/ATen.h>

#include <functional>

namespace pace {

// From the input to the output; `again` in the backward pass. Both calls must
// compute the same.
using RecomputedBody = std::function<at::Tensor(const at::Tensor& x, bool again)>;

at::Tensor Recomputed(const at::Tensor& x, RecomputedBody body);

}  // namespace pace

#endif  // PACE_MODEL_TORCH_RECOMPUTE_H_
