// OPOB: the off-policy baseline of least variance, from gradient norms.
//
//   W_i = w_i^2 |g_i|^2 (/ n_i^2)        b = sum_i W_i R_i / sum_i W_i
//
// g_i the gradient of log pi of trajectory i (length normalisation undone), w_i
// its importance weight, n_i its policy tokens. The trainer keeps two sums per
// group, of R_i w_i g_i and of w_i g_i, and subtracts b times the second; the
// coefficients returned here are those of w_i g_i in the result:
//
//   c_i = (R_i - b) / deviation          deviation of the group's rewards
//
// (population; 1 without `standardize`, or where it is not above 1e-8). Under
// scope minibatch advantages take the place of rewards and one b serves all.
//
// Source: VCPO (arXiv 2602.17616, mit-han-lab/vcpo), 1e-8 in the divisor.
// Their trainer measures |g_i| on a gradient that already holds w_i, so that
// use_weights counts it twice against the paper's formula: pass norms without.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/correction/corrections.h"
#include "train/math/sort_order.h"
#include "train/math/token_batch.h"

namespace pace {
namespace {

// The published code's: keeps 0 / 0 away where no trajectory has a gradient.
constexpr double kTinyWeight = 1e-8;

struct Weighted {
  double value = 0;
  double weight = 0;
};

double TotalWeight(const std::vector<Weighted>& items) {
  return std::accumulate(items.begin(), items.end(), 0.0,
                         [](double sum, const Weighted& item) { return sum + item.weight; });
}

double WeightedMean(const std::vector<Weighted>& items) {
  double sum = 0;
  for (const Weighted& item : items) sum += item.value * item.weight;
  return sum / (TotalWeight(items) + kTinyWeight);
}

// The smallest value at which the weights up to it reach a share of the total.
double WeightedQuantile(std::vector<Weighted> items, double share) {
  std::sort(items.begin(), items.end(), [](const Weighted& a, const Weighted& b) {
    return LargerFirst({.value = b.value}, {.value = a.value});
  });
  const double cut = share * TotalWeight(items);
  double sum = 0;
  for (const Weighted& item : items) {
    sum += item.weight;
    if (sum >= cut) return item.value;
  }
  return items.back().value;
}

bool AllEqual(const std::vector<Weighted>& items) {
  return std::all_of(items.begin(), items.end(),
                     [&](const Weighted& item) { return item.value == items[0].value; });
}

double Aggregate(std::vector<Weighted> items, OpobOptions::Aggregation aggregation) {
  if (items.empty() || TotalWeight(items) == 0) return 0;
  // Exactly, so that equal rewards leave nothing; a quotient would round.
  if (AllEqual(items)) return items[0].value;
  if (aggregation == OpobOptions::Aggregation::kMedian) return WeightedQuantile(items, 0.5);
  if (aggregation == OpobOptions::Aggregation::kWinsorizedMean) {
    const double low = WeightedQuantile(items, 0.05);
    const double high = WeightedQuantile(items, 0.95);
    for (Weighted& item : items) item.value = std::clamp(item.value, low, high);
  }
  return WeightedMean(items);
}

// Population deviation; 1 where it cannot be told from 0.
double Deviation(const std::vector<size_t>& members, std::span<const double> rewards) {
  const auto count = static_cast<double>(members.size());
  double mean = 0;
  for (const size_t member : members) mean += rewards[member] / count;
  double variance = 0;
  for (const size_t member : members) {
    variance += (rewards[member] - mean) * (rewards[member] - mean) / count;
  }
  const double deviation = std::sqrt(variance);
  return deviation > 1e-8 ? deviation : 1;
}

Status CheckBatch(const OpobBatch& batch, const OpobOptions& options) {
  const size_t count = batch.gradient_norms.size();
  const bool by_group = options.scope == OpobOptions::Scope::kGroup;
  PACE_RETURN_IF_ERROR(
      CheckLength("groups", batch.groups.size(), "trajectories", count, !by_group));
  PACE_RETURN_IF_ERROR(
      CheckLength("rewards", batch.rewards.size(), "trajectories", count, !by_group));
  PACE_RETURN_IF_ERROR(
      CheckLength("advantages", batch.advantages.size(), "trajectories", count, by_group));
  PACE_RETURN_IF_ERROR(
      CheckLength("weights", batch.weights.size(), "trajectories", count, !options.use_weights));
  PACE_RETURN_IF_ERROR(CheckLength("lengths", batch.lengths.size(), "trajectories", count,
                                   !options.normalize_by_length));
  if (!options.normalize_by_length) return Status::Ok();
  for (size_t i = 0; i < count; ++i) {
    if (batch.lengths[i] < 1) {
      return InvalidArgument("lengths[", i, "] = ", batch.lengths[i], ": must be positive");
    }
  }
  return Status::Ok();
}

double WeightOf(const OpobBatch& batch, const OpobOptions& options, size_t trajectory) {
  double factor = batch.gradient_norms[trajectory];
  if (options.use_weights) {
    const double weight = batch.weights[trajectory];
    factor *= options.max_weight.has_value() ? std::min(weight, *options.max_weight) : weight;
  }
  if (options.normalize_by_length) factor /= static_cast<double>(batch.lengths[trajectory]);
  return factor * factor;
}

}  // namespace

Result<OpobResult> OffPolicyBaseline(const OpobBatch& batch, const OpobOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_RETURN_IF_ERROR(CheckBatch(batch, options));
  const size_t count = batch.gradient_norms.size();
  const bool by_group = options.scope == OpobOptions::Scope::kGroup;
  const std::span<const double> values = by_group ? batch.rewards : batch.advantages;
  std::vector<std::vector<size_t>> scopes;
  if (by_group) {
    // Trajectories as sequences without tokens: only their groups matter.
    const std::vector<int64_t> offsets(count + 1, 0);
    scopes = GroupMembers({.offsets = offsets, .groups = batch.groups});
  } else {
    scopes.emplace_back(count);
    std::iota(scopes[0].begin(), scopes[0].end(), size_t{0});
  }
  OpobResult out;
  out.baselines.assign(count, 0.0);
  out.coefficients.assign(count, 0.0);
  for (const std::vector<size_t>& members : scopes) {
    std::vector<Weighted> items;
    for (const size_t member : members) {
      items.push_back({values[member], WeightOf(batch, options, member)});
    }
    const double baseline = Aggregate(items, options.aggregation);
    const double deviation =
        by_group && options.standardize ? Deviation(members, batch.rewards) : 1;
    for (const size_t member : members) {
      out.baselines[member] = baseline;
      out.coefficients[member] = (values[member] - baseline) / deviation;
    }
  }
  return out;
}

}  // namespace pace
