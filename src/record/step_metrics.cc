#include "record/step_metrics.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace pace {
namespace {

// Rounding of sums of wall-clock readings; anything larger is time lost or
// counted twice.
constexpr double kTimeTolerance = 1e-6;

void CheckPartsSumToStep(const StepTimes& times) {
  const double parts =
      (times.wait_data + times.train + times.sync + times.rescore_visible + times.other).count();
  const double step = times.step.count();
  PACE_CHECK(std::abs(parts - step) <= kTimeTolerance * std::max(1.0, std::abs(step)),
             "the parts of a step take ", parts, " s, the step ", step, " s");
}

}  // namespace

std::optional<double> Find(const MetricsRow& row, std::string_view name) {
  for (const auto& [key, value] : row) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void StepMetrics::Spread::Add(double value) {
  max = count == 0 ? value : std::max(max, value);
  sum += value;
  ++count;
}

void StepMetrics::BeginStep(const StepPlan& plan) {
  *this = StepMetrics();
  plan_ = plan;
}

void StepMetrics::AddDraw(const GroupSummary& group, const Decision& decision,
                          const PayloadStats& payload) {
  ++num_offered_;
  length_offered_.Add(payload.length);
  reward_offered_.Add(payload.reward);
  turns_offered_.Add(payload.turns);
  if (payload.equal_rewards.has_value()) equal_offered_.Add(*payload.equal_rewards ? 1 : 0);
  if (payload.truncated.has_value()) truncated_offered_.Add(*payload.truncated);
  if (payload.tools.has_value()) {
    tool_calls_.Add(payload.tools->calls);
    tool_failures_.Add(payload.tools->failures);
    tool_seconds_.Add(payload.tools->seconds);
  }
  if (decision.verdict == Verdict::kReject) {
    ++num_rejected_;
    return;
  }
  const bool guarded =
      decision.reason == Reason::kFreshestPossible || decision.reason == Reason::kProgressGuard;
  if (guarded) ++num_guarded_;
  waiting_.Add(decision.waiting);
  waiting_assembly_.Add(group.WaitingAssembly());
  waiting_pool_.Add(group.WaitingPool(plan_.step));
  generation_.Add(decision.generation);
  effective_.Add(decision.score);
  lag_.Add(group.LagAt(plan_.step));
  if (decision.prefix_score.has_value()) {
    ++num_scored_;
    prefix_.Add(*decision.prefix_score);
  }
  length_trained_.Add(payload.length);
  reward_trained_.Add(payload.reward);
  turns_trained_.Add(payload.turns);
  if (payload.equal_rewards.has_value()) equal_trained_.Add(*payload.equal_rewards ? 1 : 0);
  if (payload.truncated.has_value()) truncated_trained_.Add(*payload.truncated);
}

MetricsRow StepMetrics::EndStep(const StepTimes& times, const StepTotals& totals) {
  CheckPartsSumToStep(times);
  MetricsRow row;
  row.reserve(48);
  const auto put = [&row](std::string name, double value) {
    row.emplace_back(std::move(name), value);
  };
  const auto put_spread = [&put](const std::string& name, const Spread& spread) {
    if (spread.count == 0) return;
    put(name + "/mean", spread.Mean());
    put(name + "/max", spread.max);
  };
  const auto put_mean = [&put](std::string name, const Spread& spread) {
    if (spread.count > 0) put(std::move(name), spread.Mean());
  };
  const auto put_count = [&put](std::string name, int64_t count) {
    put(std::move(name), static_cast<double>(count));
  };

  put_count("step", plan_.step.step());
  put("time", totals.time.count());
  put_spread("staleness/waiting", waiting_);
  put_spread("staleness/waiting_assembly", waiting_assembly_);
  put_spread("staleness/waiting_pool", waiting_pool_);
  put_spread("staleness/generation", generation_);
  put_spread("staleness/effective", effective_);
  put_spread("staleness/lag", lag_);
  put_mean("prefix/score_mean", prefix_);
  if (waiting_.count > 0) {
    put("prefix/scored_fraction",
        static_cast<double>(num_scored_) / static_cast<double>(waiting_.count));
  }
  put_count("pool/occupancy", plan_.occupancy);
  put_count("pool/bytes", totals.pool_bytes);
  if (totals.supply_limit.has_value()) put("supply/limit", *totals.supply_limit);
  if (plan_.budget.has_value()) put("admission/budget", *plan_.budget);
  if (plan_.cutoff.has_value()) put("admission/cutoff", *plan_.cutoff);
  put_count("admission/offered", num_offered_);
  put_count("admission/rejected", num_rejected_);
  put_count("admission/guarded", num_guarded_);
  if (num_offered_ > 0) {
    put("admission/realised",
        static_cast<double>(num_rejected_) / static_cast<double>(num_offered_));
  }
  put_mean("selection/length_offered", length_offered_);
  put_mean("selection/length_trained", length_trained_);
  put_mean("selection/reward_offered", reward_offered_);
  put_mean("selection/reward_trained", reward_trained_);
  put_mean("selection/turns_offered", turns_offered_);
  put_mean("selection/turns_trained", turns_trained_);
  put_mean("selection/equal_rewards_offered", equal_offered_);
  put_mean("selection/equal_rewards_trained", equal_trained_);
  put_mean("selection/truncated_offered", truncated_offered_);
  put_mean("selection/truncated_trained", truncated_trained_);
  put_mean("tools/calls", tool_calls_);
  if (tool_calls_.sum > 0) put("tools/success", 1 - tool_failures_.sum / tool_calls_.sum);
  put_mean("tools/seconds", tool_seconds_);
  put("throughput/produced", totals.produced);
  put("throughput/consumed", totals.consumed);
  put("time/step", times.step.count());
  put("time/wait_data", times.wait_data.count());
  put("time/train", times.train.count());
  put("time/sync", times.sync.count());
  put("time/rescore_visible", times.rescore_visible.count());
  put("time/other", times.other.count());
  put("time/rescore_hidden", times.rescore_hidden.count());
  if (totals.gpu_seconds.has_value()) {
    put("cost/gpu_time", *totals.gpu_seconds);
    if (totals.num_trained_groups > 0) {
      put("cost/per_trained_prompt",
          *totals.gpu_seconds / static_cast<double>(totals.num_trained_groups));
    }
  }
  put_count("cost/tokens_generated", totals.num_tokens_generated);
  put_count("cost/tokens_never_trained", totals.num_tokens_never_trained);
  put_count("cost/tokens_in_pool", totals.num_tokens_in_pool);
  if (times.step.count() > 0) {
    if (times.engines_busy.has_value()) {
      put("rollout/busy", std::clamp(*times.engines_busy / times.step, 0.0, 1.0));
    }
    put("rollout/tokens_per_s", static_cast<double>(totals.num_step_tokens) / times.step.count());
  }
  put_count("rollout/interrupted", totals.num_interrupted);
  *this = StepMetrics();
  return row;
}

}  // namespace pace
