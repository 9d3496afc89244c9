#include "train/loss/policy_term.h"

#include <array>
#include <cstdint>
#include <utility>

#include "core/check.h"

namespace pace {
namespace {

std::span<const double> Range(std::span<const double> values, size_t begin, size_t end) {
  return values.empty() ? values : values.subspan(begin, end - begin);
}

}  // namespace

Result<LossResult> PolicyTerm::Evaluate(const TokenBatch& batch) const {
  LossResult result;
  if (given.empty()) {
    PACE_ASSIGN_OR_RETURN(result, loss.Evaluate(batch, weights));
  } else {
    result.gradient.assign(given.begin(), given.end());
  }
  if (kl_coefficient > 0 && !initial_logprobs.empty()) {
    PACE_ASSIGN_OR_RETURN(const KlRegularizerTerm penalty,
                          KlRegularizer(batch, weights, initial_logprobs, kl, kl_coefficient));
    for (size_t token = 0; token < result.gradient.size(); ++token) {
      result.gradient[token] += penalty.gradient[token];
    }
    MergeMetrics({{"train/kl_initial", penalty.metric.value, penalty.metric.weight}},
                 result.metrics);
  }
  return result;
}

bool PolicyTerm::IsOfSingleTokens() const {
  return weights.padding == ReductionWeights::Padding::kIgnored &&
         (!given.empty() || loss.scope() == LossScope::kToken);
}

Result<std::vector<double>> PolicyTerm::Slopes(const TokenBatch& batch, size_t begin,
                                               size_t end) const {
  PACE_CHECK(IsOfSingleTokens(), "a loss that compares tokens");
  // To such a loss any run of tokens is a sequence.
  const std::array<int64_t, 2> offsets = {0, static_cast<int64_t>(end - begin)};
  TokenBatch part = batch;
  part.layout = {
      .offsets = offsets, .groups = {}, .mask = batch.layout.mask.subspan(begin, end - begin)};
  part.logprobs = Range(batch.logprobs, begin, end);
  part.frozen_logprobs = Range(batch.frozen_logprobs, begin, end);
  part.rollout_logprobs = Range(batch.rollout_logprobs, begin, end);
  part.proximal_logprobs = Range(batch.proximal_logprobs, begin, end);
  part.advantages = Range(batch.advantages, begin, end);
  part.importance_weights = Range(batch.importance_weights, begin, end);
  part.rewards = {};
  const std::span<const double> own = Range(weights.token, begin, end);
  const ReductionWeights part_weights = {.token = {own.begin(), own.end()}};
  const PolicyTerm term = {.loss = loss,
                           .weights = part_weights,
                           .given = Range(given, begin, end),
                           .initial_logprobs = Range(initial_logprobs, begin, end),
                           .kl = kl,
                           .kl_coefficient = kl_coefficient};
  PACE_ASSIGN_OR_RETURN(LossResult result, term.Evaluate(part));
  return std::move(result.gradient);
}

}  // namespace pace
