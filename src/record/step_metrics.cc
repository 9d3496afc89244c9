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
  state_.plan = plan;
}

void StepMetrics::AddDraw(const GroupSummary& group, const Decision& decision,
                          const PayloadStats& payload) {
  ++state_.num_offered;
  state_.length_offered.Add(payload.length);
  state_.reward_offered.Add(payload.reward);
  state_.turns_offered.Add(payload.turns);
  if (payload.equal_rewards.has_value()) state_.equal_offered.Add(*payload.equal_rewards ? 1 : 0);
  if (payload.truncated.has_value()) state_.truncated_offered.Add(*payload.truncated);
  if (payload.tools.has_value()) {
    state_.tool_calls.Add(payload.tools->calls);
    state_.tool_failures.Add(payload.tools->failures);
    state_.tool_seconds.Add(payload.tools->seconds);
  }
  if (decision.verdict == Verdict::kReject) {
    ++state_.num_rejected;
    return;
  }
  const bool guarded =
      decision.reason == Reason::kFreshestPossible || decision.reason == Reason::kProgressGuard;
  if (guarded) ++state_.num_guarded;
  state_.waiting.Add(decision.waiting);
  state_.waiting_assembly.Add(group.WaitingAssembly());
  state_.waiting_pool.Add(group.WaitingPool(state_.plan.step));
  state_.generation.Add(decision.generation);
  state_.effective.Add(decision.score);
  state_.lag.Add(group.LagAt(state_.plan.step));
  if (decision.prefix_score.has_value()) {
    ++state_.num_scored;
    state_.prefix.Add(*decision.prefix_score);
  }
  state_.length_trained.Add(payload.length);
  state_.reward_trained.Add(payload.reward);
  state_.turns_trained.Add(payload.turns);
  if (payload.equal_rewards.has_value()) state_.equal_trained.Add(*payload.equal_rewards ? 1 : 0);
  if (payload.truncated.has_value()) state_.truncated_trained.Add(*payload.truncated);
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

  put_count("step", state_.plan.step.step());
  put("time", totals.time.count());
  put_spread("staleness/waiting", state_.waiting);
  put_spread("staleness/waiting_assembly", state_.waiting_assembly);
  put_spread("staleness/waiting_pool", state_.waiting_pool);
  put_spread("staleness/generation", state_.generation);
  put_spread("staleness/effective", state_.effective);
  put_spread("staleness/lag", state_.lag);
  put_mean("prefix/score_mean", state_.prefix);
  if (state_.waiting.count > 0) {
    put("prefix/scored_fraction",
        static_cast<double>(state_.num_scored) / static_cast<double>(state_.waiting.count));
  }
  put_count("pool/occupancy", state_.plan.occupancy);
  put_count("pool/bytes", totals.pool_bytes);
  if (totals.supply_limit.has_value()) put("supply/limit", *totals.supply_limit);
  if (state_.plan.budget.has_value()) put("admission/budget", *state_.plan.budget);
  if (state_.plan.cutoff.has_value()) put("admission/cutoff", *state_.plan.cutoff);
  put_count("admission/offered", state_.num_offered);
  put_count("admission/rejected", state_.num_rejected);
  put_count("admission/guarded", state_.num_guarded);
  if (state_.num_offered > 0) {
    put("admission/realised",
        static_cast<double>(state_.num_rejected) / static_cast<double>(state_.num_offered));
  }
  put_mean("selection/length_offered", state_.length_offered);
  put_mean("selection/length_trained", state_.length_trained);
  put_mean("selection/reward_offered", state_.reward_offered);
  put_mean("selection/reward_trained", state_.reward_trained);
  put_mean("selection/turns_offered", state_.turns_offered);
  put_mean("selection/turns_trained", state_.turns_trained);
  put_mean("selection/equal_rewards_offered", state_.equal_offered);
  put_mean("selection/equal_rewards_trained", state_.equal_trained);
  put_mean("selection/truncated_offered", state_.truncated_offered);
  put_mean("selection/truncated_trained", state_.truncated_trained);
  put_mean("tools/calls", state_.tool_calls);
  if (state_.tool_calls.sum > 0)
    put("tools/success", 1 - state_.tool_failures.sum / state_.tool_calls.sum);
  put_mean("tools/seconds", state_.tool_seconds);
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
