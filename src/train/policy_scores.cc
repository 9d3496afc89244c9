#include "train/policy_scores.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdint>

#include "core/check.h"
#include "model/recompute_plan.h"
#include "train/logit_rows.h"

namespace pace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Logits of a chunk: few enough that memory stays small, enough for full speed
// of the products.
constexpr int64_t kChunkElements = int64_t{1} << 21;

int64_t ChunkRows(const at::Tensor& head_VH) {
  const int64_t elements = head_VH.is_cuda() ? kMaxGpuLogits : kChunkElements;
  // Tiles read sixteen rows at a time.
  return std::clamp<int64_t>(elements / head_VH.size(0), 16, 4096) / 16 * 16;
}

LogitScores Narrow(const LogitScores& scores, int64_t begin, int64_t count) {
  return {.logprobs =
              scores.logprobs.defined() ? scores.logprobs.narrow(0, begin, count) : at::Tensor(),
          .log_sums = scores.log_sums.narrow(0, begin, count),
          .entropies = scores.entropies.narrow(0, begin, count)};
}

template <typename Body>
void ForChunks(int64_t num_rows, int64_t chunk, const Body& body) {
  for (int64_t begin = 0; begin < num_rows; begin += chunk) {
    body(begin, std::min(chunk, num_rows - begin));
  }
}

// Sums over a vocabulary in parts: some processors' products add all terms to one float, which
// loses more than float32 has to.
at::Tensor SumOverVocabulary(const at::Tensor& d_logits_NV, const at::Tensor& head_VH) {
  constexpr int64_t kPart = 1024;
  const int64_t size = head_VH.size(0);
  if (size <= kPart || d_logits_NV.is_cuda() || d_logits_NV.scalar_type() != at::kFloat) {
    return at::mm(d_logits_NV, head_VH);
  }
  at::Tensor sum = at::mm(d_logits_NV.narrow(1, 0, kPart), head_VH.narrow(0, 0, kPart));
  for (int64_t begin = kPart; begin < size; begin += kPart) {
    const int64_t count = std::min(kPart, size - begin);
    sum.add_(at::mm(d_logits_NV.narrow(1, begin, count), head_VH.narrow(0, begin, count)));
  }
  return sum;
}

// The gradients of hidden states and head, of which each chunk of logits adds its part.
class HeadGradients {
 public:
  HeadGradients(const LogitProduct& product, const at::Tensor& hidden, const at::Tensor& head)
      : product_(product),
        d_hidden_(at::empty(hidden.sizes(), hidden.options())),
        d_head_(at::zeros_like(head)) {}

  at::ScalarType dtype() const { return product_.head().scalar_type(); }
  void Add(int64_t begin, int64_t count, const at::Tensor& d_logits) {
    d_hidden_.narrow(0, begin, count).copy_(SumOverVocabulary(d_logits, product_.head()));
    const at::Tensor hidden = product_.Hidden(begin, count);
    if (dtype() == d_head_.scalar_type()) {
      d_head_.addmm_(d_logits.t(), hidden);
    } else if (d_head_.is_cuda()) {
      at::addmm_out(d_head_, d_head_, d_logits.t(), hidden, at::kFloat);
    } else {
      // Parts bound the temporary memory: the product in bf16 and, on some processors, its
      // float32 sums.
      constexpr int64_t kPart = 4096;
      ForChunks(d_head_.size(0), kPart, [&](int64_t first, int64_t size) {
        d_head_.narrow(0, first, size).add_(at::mm(d_logits.narrow(1, first, size).t(), hidden));
      });
    }
  }
  const at::Tensor& d_hidden() const { return d_hidden_; }
  const at::Tensor& d_head() const { return d_head_; }

 private:
  const LogitProduct& product_;
  at::Tensor d_hidden_;
  at::Tensor d_head_;
};

LogitScores EmptyScores(const at::Tensor& hidden) {
  const at::ScalarType wide = hidden.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto one_per_row = [&] {
    return at::empty({hidden.size(0)}, hidden.options().dtype(wide));
  };
  return {.logprobs = one_per_row(), .log_sums = one_per_row(), .entropies = one_per_row()};
}

class LogProbFunction : public torch::autograd::Function<LogProbFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden,
                               const at::Tensor& head, const at::Tensor& given_targets,
                               double temperature) {
    const at::Tensor targets = given_targets.contiguous();
    const LogitScores scores = EmptyScores(hidden);
    const LogitProduct product(hidden, head);
    ForChunks(hidden.size(0), ChunkRows(head), [&](int64_t begin, int64_t count) {
      ScoreLogits(product.Logits(begin, count), targets.narrow(0, begin, count), temperature,
                  Narrow(scores, begin, count));
    });
    context->save_for_backward({hidden, head, targets, scores.log_sums, scores.entropies});
    context->saved_data["temperature"] = temperature;
    // An unused output has no gradient, rather than one of zeros to multiply by.
    context->set_materialize_grads(false);
    return {scores.logprobs, scores.entropies};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& hidden = saved[0];
    const at::Tensor& head = saved[1];
    const at::Tensor& targets = saved[2];
    const LogitScores scores = {.logprobs = {}, .log_sums = saved[3], .entropies = saved[4]};
    const double temperature = context->saved_data["temperature"].toDouble();
    const at::Tensor of_logprob =
        gradients[0].defined() ? gradients[0].contiguous() : at::zeros_like(saved[3]);
    const at::Tensor of_entropy = gradients[1].defined() ? gradients[1].contiguous() : at::Tensor();

    const LogitProduct product(hidden, head);
    HeadGradients sums(product, hidden, head);
    ForChunks(hidden.size(0), ChunkRows(head), [&](int64_t begin, int64_t count) {
      const auto own = [&](const at::Tensor& x) {
        return x.defined() ? x.narrow(0, begin, count) : x;
      };
      sums.Add(begin, count,
               LogitGradients(product.Logits(begin, count), own(targets), temperature,
                              Narrow(scores, begin, count), own(of_logprob), own(of_entropy),
                              sums.dtype()));
    });
    return {sums.d_hidden(), sums.d_head(), at::Tensor(), at::Tensor()};
  }
};

// The same with the gradients that the log-probs themselves lead to.
class DifferentiatedFunction : public torch::autograd::Function<DifferentiatedFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden,
                               const at::Tensor& head, const at::Tensor& given_targets,
                               double temperature, const SlopesOfRows& slopes) {
    const at::Tensor targets = given_targets.contiguous();
    const LogitScores scores = EmptyScores(hidden);
    const LogitProduct product(hidden, head);
    HeadGradients sums(product, hidden, head);
    ForChunks(hidden.size(0), ChunkRows(head), [&](int64_t begin, int64_t count) {
      const at::Tensor logits = product.Logits(begin, count);
      const at::Tensor own_targets = targets.narrow(0, begin, count);
      const LogitScores own = Narrow(scores, begin, count);
      ScoreLogits(logits, own_targets, temperature, own);
      const RowSlopes of = slopes(begin, own.logprobs);
      sums.Add(begin, count,
               LogitGradients(logits, own_targets, temperature, own, of.of_logprob_N,
                              of.of_entropy_N, sums.dtype()));
    });
    context->save_for_backward({sums.d_hidden(), sums.d_head()});
    context->set_materialize_grads(false);
    return {scores.logprobs, scores.entropies};
  }

  static variable_list backward(AutogradContext* context, const variable_list& /*gradients*/) {
    const variable_list saved = context->get_saved_variables();
    return {saved[0], saved[1], at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

TokenLogProbsResult TokenLogProbs(const at::Tensor& hidden_NH, const at::Tensor& head_VH,
                                  const at::Tensor& targets_N, double temperature,
                                  const SlopesOfRows& slopes) {
  PACE_CHECK(temperature > 0, "temperature = ", temperature);
  const variable_list out =
      slopes && at::GradMode::is_enabled()
          ? DifferentiatedFunction::apply(hidden_NH, head_VH, targets_N, temperature, slopes)
          : LogProbFunction::apply(hidden_NH, head_VH, targets_N, temperature);
  return {.logprobs_N = out[0], .entropy_N = out[1]};
}

PolicyRows ForwardPolicyRows(const TrainingNetwork& network, const Minibatch& batch) {
  PackedTokens packed;
  PolicyRows out;
  std::vector<int64_t> rows;
  std::vector<int64_t> targets;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const TrainSequence& sequence = *batch.sequences[i];
    const auto begin = static_cast<int64_t>(packed.tokens.size());
    // The last token only ever is a target.
    packed.tokens.insert(packed.tokens.end(), sequence.tokens.begin(), sequence.tokens.end() - 1);
    packed.lengths.push_back(static_cast<int64_t>(sequence.tokens.size()) - 1);
    const auto first = static_cast<size_t>(batch.offsets[i]);
    for (size_t token = 0; token < sequence.num_response_tokens(); ++token) {
      if (batch.mask[first + token] == 0) continue;
      const int64_t position = sequence.num_prompt_tokens + static_cast<int64_t>(token);
      rows.push_back(begin + position - 1);
      targets.push_back(sequence.tokens[static_cast<size_t>(position)]);
      out.tokens.push_back(first + token);
    }
  }
  const at::Tensor hidden_TH = network.Hidden(packed);
  const at::Device device = hidden_TH.device();
  out.hidden_NH = hidden_TH.index_select(0, at::tensor(rows).to(device));
  out.targets_N = at::tensor(targets).to(device);
  return out;
}

PolicyScores ScorePolicyTokens(const TrainingNetwork& network, const Minibatch& batch,
                               double temperature, const SlopesOfPolicy& slopes) {
  PolicyScores scored{ForwardPolicyRows(network, batch), {}, {}};
  SlopesOfRows of_rows;
  if (slopes) {
    of_rows = [&](int64_t begin, const at::Tensor& logprobs_N) {
      return slopes(scored, begin, logprobs_N);
    };
  }
  const TokenLogProbsResult result =
      TokenLogProbs(scored.hidden_NH, network.head_VH(), scored.targets_N, temperature, of_rows);
  scored.logprobs_N = result.logprobs_N;
  scored.entropy_N = result.entropy_N;
  return scored;
}

void PolicyRows::Spread(const at::Tensor& values_N, std::span<double> out, size_t begin) const {
  const at::Tensor values = values_N.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* data = values.data_ptr<double>();
  const auto count = static_cast<size_t>(values.numel());
  for (size_t i = 0; i < count; ++i) out[tokens[begin + i]] = data[i];
}

at::Tensor PolicyRows::Gather(std::span<const double> values) const {
  if (tokens.empty()) return GatherRange({}, 0, 0);
  return GatherRange(values.subspan(tokens.front()), 0, tokens.size());
}

at::Tensor PolicyRows::GatherRange(std::span<const double> values, size_t begin,
                                   size_t count) const {
  std::vector<double> chosen;
  for (size_t i = begin; i < begin + count; ++i) {
    chosen.push_back(values[tokens[i] - tokens[begin]]);
  }
  const bool is_double = hidden_NH.scalar_type() == at::kDouble;
  return at::tensor(chosen, at::kDouble)
      .to(hidden_NH.device(), is_double ? at::kDouble : at::kFloat);
}

}  // namespace pace
