// Families kl_penalties, logprob_entropy and adamw.
#include <algorithm>
#include <cmath>

#include "conformance/case_file.h"
#include "conformance/numerics_case.h"
#include "train/adamw_reference.h"
#include "train/math/kl_penalty.h"
#include "train/math/logprob_reference.h"

namespace pace {
namespace {

template <typename Real>
std::vector<std::vector<Real>> ReadTensors(NumericsCase& entry, const Value& tensors) {
  std::vector<std::vector<Real>> read;
  if (!tensors.is_list()) {
    entry.Fail("tensors: must be a list");
    return read;
  }
  for (const Value& tensor : tensors.list()) {
    std::vector<double> numbers;
    if (!AppendNumbers(tensor, numbers)) entry.Fail("tensors: must hold numbers");
    read.emplace_back();
    for (const double number : numbers) read.back().push_back(static_cast<Real>(number));
  }
  return read;
}

template <typename Real>
std::vector<double> Flat(const std::vector<std::vector<Real>>& tensors) {
  std::vector<double> flat;
  for (const std::vector<Real>& tensor : tensors) {
    for (const Real number : tensor) flat.push_back(static_cast<double>(number));
  }
  return flat;
}

template <typename Real>
bool SameShapes(const std::vector<std::vector<Real>>& a, const std::vector<std::vector<Real>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.size() == y.size(); });
}

template <typename Real>
void RunAdamW(NumericsCase& entry) {
  AdamWReferenceOptions options;
  std::vector<double> betas;
  if (!AppendNumbers(entry.Config("betas"), betas) || betas.size() != 2) {
    return entry.Fail("config.betas: must be two numbers");
  }
  options.beta1 = betas[0];
  options.beta2 = betas[1];
  options.epsilon = entry.ConfigReal("eps").value_or(options.epsilon);
  options.weight_decay = entry.ConfigReal("weight_decay").value_or(options.weight_decay);
  if (!entry.Check(options.Validate())) return;
  const double base = entry.ConfigReal("lr").value_or(0);
  const double max_norm = entry.ConfigReal("max_grad_norm").value_or(HUGE_VAL);
  const auto num_warmup = static_cast<int64_t>(entry.ConfigReal("num_warmup_steps").value_or(0));
  std::vector<std::vector<Real>> parameters = ReadTensors<Real>(entry, entry.Input("params"));
  AdamWReference<Real> optimizer(options, parameters);
  const Value gradients = entry.Input("grads");
  const Value steps = entry.Expected("steps");
  if (!gradients.is_list() || !steps.is_list() || gradients.list().size() != steps.list().size()) {
    return entry.Fail("inputs.grads, expected.steps: must be lists of one length");
  }
  for (size_t i = 0; i < steps.list().size(); ++i) {
    std::vector<std::vector<Real>> gradient = ReadTensors<Real>(entry, gradients.list()[i]);
    const Value& expected = steps.list()[i];
    if (!SameShapes(gradient, parameters)) {
      return entry.Fail("inputs.grads: must have the shapes of the parameters");
    }
    const double norm = GradientNorm<Real>(gradient);
    const auto factor = static_cast<Real>(ClipFactor(norm, max_norm));
    for (std::vector<Real>& tensor : gradient) {
      for (Real& g : tensor) g *= factor;
    }
    const double lr = WarmupLearningRate(base, static_cast<int64_t>(i), num_warmup);
    optimizer.Update(lr, gradient, parameters);
    entry.Compare("lr", lr, FieldOf(expected, "lr"));
    entry.Compare("grad_norm_before_clip", norm, FieldOf(expected, "grad_norm_before_clip"));
    entry.CompareAll("params", Flat(parameters), FieldOf(expected, "params"));
    entry.CompareAll("exp_avg", Flat(optimizer.first_moments()), FieldOf(expected, "exp_avg"));
    entry.CompareAll("exp_avg_sq", Flat(optimizer.second_moments()),
                     FieldOf(expected, "exp_avg_sq"));
  }
}

// y[i][j] = sum_k a[i][k] b[j][k]
std::vector<double> TimesTransposed(const std::vector<double>& a, const std::vector<double>& b,
                                    size_t inner) {
  const size_t rows = a.size() / inner;
  const size_t columns = b.size() / inner;
  std::vector<double> product(rows * columns, 0.0);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      for (size_t k = 0; k < inner; ++k) {
        product[i * columns + j] += a[i * inner + k] * b[j * inner + k];
      }
    }
  }
  return product;
}

std::vector<double> Transposed(const std::vector<double>& a, size_t columns) {
  std::vector<double> result(a.size());
  const size_t rows = a.size() / columns;
  for (size_t i = 0; i < a.size(); ++i) result[(i % columns) * rows + i / columns] = a[i];
  return result;
}

}  // namespace

void CheckKlPenalty(NumericsCase& entry) {
  std::optional<KlPenaltyOptions> options = KlPenaltyFromName(entry.ConfigText("kl_penalty"));
  if (!options.has_value()) {
    return entry.SkipBecause(Concat("we have no penalty `", entry.ConfigText("kl_penalty"), "`"));
  }
  if (entry.ConfigText("implementation") == "areal") {
    entry.Use(kSinglePrecision);
    options->max_log_ratio.reset();
    options->bound_all = true;
    if (!entry.ConfigBool("apply_clamp", true)) options->max_value.reset();
  }
  const std::vector<double> logprobs = entry.Numbers("logprob");
  const std::vector<double> reference = entry.Numbers("ref_logprob");
  if (logprobs.size() != reference.size()) return entry.Fail("inputs: sizes differ");
  std::vector<double> values;
  std::vector<double> slopes;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    const KlTerm term = KlPenalty(*options, logprobs[i], reference[i]);
    values.push_back(term.value);
    slopes.push_back(term.slope);
  }
  entry.ExpectAll("kl", values);
  entry.ExpectAll("grad_logprob_of_sum", slopes);
}

void CheckLogprobEntropy(NumericsCase& entry) {
  const std::vector<double> hidden = entry.Numbers("hidden");
  const std::vector<double> weight = entry.Numbers("weight");
  const std::vector<int64_t> targets = entry.Integers("targets");
  const std::vector<double> logprob_gradient = entry.Numbers("upstream_grad_logprob");
  const std::vector<double> entropy_gradient = entry.Numbers("upstream_grad_entropy");
  const double temperature = entry.ConfigReal("temperature").value_or(1);
  const size_t num_tokens = targets.size();
  if (num_tokens == 0 || hidden.empty() || hidden.size() % num_tokens != 0 ||
      weight.size() % (hidden.size() / num_tokens) != 0 || logprob_gradient.size() != num_tokens ||
      entropy_gradient.size() != num_tokens) {
    return entry.Fail("inputs: sizes disagree");
  }
  const size_t width = hidden.size() / num_tokens;
  const size_t vocabulary = weight.size() / width;
  const std::vector<double> logits = TimesTransposed(hidden, weight, width);
  std::vector<double> gradient(logits.size(), 0.0);
  std::vector<double> logprobs;
  std::vector<double> entropies;
  for (size_t token = 0; token < num_tokens; ++token) {
    const auto target = static_cast<size_t>(targets[token]);
    if (target >= vocabulary) return entry.Fail("inputs.targets: outside the vocabulary");
    const std::span<const double> row(&logits[token * vocabulary], vocabulary);
    const TokenScore score = ScoreToken(row, target, temperature);
    logprobs.push_back(score.logprob);
    entropies.push_back(score.entropy);
    AddLogitGradient(row, target, temperature, logprob_gradient[token], entropy_gradient[token],
                     {&gradient[token * vocabulary], vocabulary});
  }
  entry.ExpectAll("logprob", logprobs);
  entry.ExpectAll("entropy", entropies);
  const std::vector<double> weight_columns = Transposed(weight, width);
  entry.ExpectAll("grad_hidden", TimesTransposed(gradient, weight_columns, vocabulary));
  entry.ExpectAll("grad_weight", TimesTransposed(Transposed(gradient, vocabulary),
                                                 Transposed(hidden, width), num_tokens));
}

void CheckAdamW(NumericsCase& entry) {
  entry.is_single_precision() ? RunAdamW<float>(entry) : RunAdamW<double>(entry);
}

}  // namespace pace
