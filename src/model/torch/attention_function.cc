#include "model/torch/attention_function.h"

#include <torch/csrc/autograd/custom_function.h>

#include "model/torch/row_functions.h"

namespace pace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Autograd takes no undefined inputs: a norm that is not there is empty.
at::Tensor OrEmpty(const at::Tensor& norm) {
  return norm.defined() ? norm.contiguous() : at::empty({0}, at::kFloat);
}
float* FloatsOf(const at::Tensor& norm) {
  return norm.numel() > 0 ? DataOf<float>(norm) : nullptr;
}

PackedAttention::Norms NormsOf(const at::Tensor& query, const at::Tensor& key) {
  return {.query = FloatsOf(query), .key = FloatsOf(key)};
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given,
                            const at::Tensor& query_norm, const at::Tensor& key_norm,
                            const c10::intrusive_ptr<SharedAttention>& shared) {
    const at::Tensor qkv = given.contiguous();
    const at::Tensor out =
        at::empty({qkv.size(0), shared->num_heads * shared->head_dim}, qkv.options());
    const at::Tensor log_sums =
        at::empty({qkv.size(0), shared->num_heads}, qkv.options().dtype(at::kFloat));
    WithElements(qkv, [&](auto zero) {
      using T = decltype(zero);
      shared->attention.Forward<T>(DataOf<T>(qkv), NormsOf(query_norm, key_norm), DataOf<T>(out),
                                   DataOf<float>(log_sums));
    });
    context->save_for_backward({qkv, query_norm, key_norm, out, log_sums});
    context->saved_data["attention"] = c10::IValue::make_capsule(shared);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto shared = c10::static_intrusive_pointer_cast<SharedAttention>(
        context->saved_data["attention"].toCapsule());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const at::Tensor g = gradients[0].contiguous();
    const at::Tensor d_qkv = at::empty_like(qkv);
    const at::Tensor d_query_norm = at::zeros_like(saved[1]);
    const at::Tensor d_key_norm = at::zeros_like(saved[2]);
    WithElements(qkv, [&](auto zero) {
      using T = decltype(zero);
      shared->attention.Backward<T>(DataOf<T>(qkv), NormsOf(saved[1], saved[2]),
                                    DataOf<T>(saved[3]), DataOf<float>(saved[4]), DataOf<T>(g),
                                    DataOf<T>(d_qkv),
                                    {.query = FloatsOf(d_query_norm), .key = FloatsOf(d_key_norm)});
    });
    return {d_qkv, d_query_norm, d_key_norm, at::Tensor()};
  }
};

}  // namespace

SharedAttention::SharedAttention(const ModelConfig& config, const std::vector<int64_t>& lengths,
                                 const at::Tensor& cos, const at::Tensor& sin)
    : num_heads(config.num_heads),
      head_dim(config.head_dim),
      cosines(cos.contiguous()),
      sines(sin.contiguous()),
      attention({.num_heads = config.num_heads,
                 .num_kv_heads = config.num_kv_heads,
                 .head_dim = config.head_dim,
                 .norm_epsilon = static_cast<float>(config.norm_epsilon),
                 .lengths = lengths,
                 .cosines = DataOf<float>(cosines),
                 .sines = DataOf<float>(sines)}) {}

at::Tensor AttendRows(const at::Tensor& qkv, const at::Tensor& query_norm,
                      const at::Tensor& key_norm,
                      const c10::intrusive_ptr<SharedAttention>& attention) {
  return AttentionFunction::apply(qkv, OrEmpty(query_norm), OrEmpty(key_norm), attention);
}

}  // namespace pace
