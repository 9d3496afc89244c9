// ProductOfRows: rows times matrices, with gradients, by LibTorch's own products.
//
//   const at::Tensor y = ProductOfRows(x, {.weights = {query, key, value}});
//
// For the backward pass the rows and the parameters themselves are kept, not what was made of them:
// stacked and rounded weights are made again there. So parameters that left after the forward pass
// (LayerHooks) take no memory until the backward pass needs them.
#ifndef PACE_MODEL_TORCH_PRODUCT_FUNCTION_H_
#define PACE_MODEL_TORCH_PRODUCT_FUNCTION_H_

#include <ATen/ATen.h>

#include <vector>

namespace pace {

struct RowProduct {
  std::vector<at::Tensor> weights = {};  // their results stand side by side
  std::vector<at::Tensor> biases = {};   // as many, or none
  at::Tensor residual = {};              // added, where there is no bias; undefined: none
};

// Of the type of x, to which weights are rounded where they are wider.
at::Tensor ProductOfRows(const at::Tensor& x, const RowProduct& product);

}  // namespace pace

#endif  // PACE_MODEL_TORCH_PRODUCT_FUNCTION_H_
