#include "model/torch/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace pace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What autograd's context can hold.
struct HeldBody : torch::CustomClassHolder {
  explicit HeldBody(RecomputedBody given) : body(std::move(given)) {}
  RecomputedBody body;
};

class RecomputeFunction : public torch::autograd::Function<RecomputeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const c10::intrusive_ptr<HeldBody>& held) {
    context->save_for_backward({x});
    context->saved_data["body"] = c10::IValue::make_capsule(held);
    return held->body(x, /*again=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held =
        c10::static_intrusive_pointer_cast<HeldBody>(context->saved_data["body"].toCapsule());
    const at::Tensor x = context->get_saved_variables().front().detach().set_requires_grad(true);
    {
      const at::AutoGradMode with_gradients(true);
      torch::autograd::backward({held->body(x, /*again=*/true)}, {gradients.front()});
    }
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor Recomputed(const at::Tensor& x, RecomputedBody body) {
  return RecomputeFunction::apply(x, c10::make_intrusive<HeldBody>(std::move(body)));
}

}  // namespace pace
