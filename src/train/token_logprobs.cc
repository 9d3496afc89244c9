#include "train/token_logprobs.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdint>

#include "core/check.h"

namespace pace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Logits of a chunk: small enough for a core's cache on the CPU, large enough
// for full speed of the products.
constexpr int64_t kChunkElements = int64_t{1} << 20;

int64_t ChunkRows(int64_t vocabulary) {
  return std::clamp<int64_t>(kChunkElements / vocabulary, 16, 4096);
}

// Probabilities are needed in float32 at least.
at::Tensor Wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

template <typename Body>
void ForChunks(int64_t num_rows, int64_t chunk, const Body& body) {
  for (int64_t begin = 0; begin < num_rows; begin += chunk) {
    body(begin, std::min(chunk, num_rows - begin));
  }
}

class LogProbFunction : public torch::autograd::Function<LogProbFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden,
                               const at::Tensor& head, const at::Tensor& targets,
                               double temperature) {
    const at::Tensor wide_hidden = Wide(hidden);
    const at::Tensor columns = Wide(head).t();
    const int64_t num_rows = hidden.size(0);
    const at::Tensor logprobs = at::empty({num_rows}, wide_hidden.options());
    const at::Tensor entropy = at::empty_like(logprobs);
    const at::Tensor log_sum = at::empty_like(logprobs);
    ForChunks(num_rows, ChunkRows(head.size(0)), [&](int64_t begin, int64_t count) {
      const at::Tensor logits =
          at::mm(wide_hidden.narrow(0, begin, count), columns).div_(temperature);
      const at::Tensor chosen =
          logits.gather(1, targets.narrow(0, begin, count).unsqueeze(1)).squeeze(1);
      const at::Tensor normaliser = at::logsumexp(logits, 1);
      log_sum.narrow(0, begin, count).copy_(normaliser);
      logprobs.narrow(0, begin, count).copy_(chosen - normaliser);
      // H = log Z - sum p logit
      const at::Tensor shares = at::exp(logits - normaliser.unsqueeze(1));
      entropy.narrow(0, begin, count).copy_(normaliser - (shares.mul_(logits)).sum(1));
    });
    context->save_for_backward({hidden, head, targets, log_sum, entropy});
    context->saved_data["temperature"] = temperature;
    // An unused output has no gradient, rather than one of zeros to multiply by.
    context->set_materialize_grads(false);
    return {logprobs, entropy};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& hidden = saved[0];
    const at::Tensor& head = saved[1];
    const at::Tensor& targets = saved[2];
    const at::Tensor wide_hidden = Wide(hidden);
    const at::Tensor rows = Wide(head);
    const double temperature = context->saved_data["temperature"].toDouble();
    const at::Tensor of_logprob = gradients[0].defined() ? gradients[0] : at::zeros_like(saved[3]);
    const at::Tensor& of_entropy = gradients[1];

    const at::Tensor d_hidden = at::empty_like(wide_hidden);
    at::Tensor d_head = at::zeros_like(rows);
    ForChunks(hidden.size(0), ChunkRows(head.size(0)), [&](int64_t begin, int64_t count) {
      const auto own = [&](const at::Tensor& x) { return x.narrow(0, begin, count).unsqueeze(1); };
      const at::Tensor h = wide_hidden.narrow(0, begin, count);
      at::Tensor log_shares = at::mm(h, rows.t()).div_(temperature).sub_(own(saved[3]));
      at::Tensor d_logits = at::exp(log_shares);
      // d logprob = onehot - p; d entropy = -p (log p + H)
      if (of_entropy.defined()) {
        d_logits.mul_(log_shares.add_(own(saved[4])).mul_(own(of_entropy)).add_(own(of_logprob)));
      } else {
        d_logits.mul_(own(of_logprob));
      }
      d_logits.neg_();
      d_logits.scatter_add_(1, own(targets), own(of_logprob));
      d_logits.div_(temperature);
      d_hidden.narrow(0, begin, count).copy_(at::mm(d_logits, rows));
      d_head.addmm_(d_logits.t(), h);
    });
    return {d_hidden.to(hidden.scalar_type()), d_head.to(head.scalar_type()), at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

TokenLogProbsResult TokenLogProbs(const at::Tensor& hidden_NH, const at::Tensor& head_VH,
                                  const at::Tensor& targets_N, double temperature) {
  PACE_CHECK(temperature > 0, "temperature = ", temperature);
  const variable_list out = LogProbFunction::apply(hidden_NH, head_VH, targets_N, temperature);
  return {.logprobs_N = out[0], .entropy_N = out[1]};
}

}  // namespace pace
