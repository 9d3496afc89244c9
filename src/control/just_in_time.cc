#include "control/just_in_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/exact_math.h"

namespace pace {
namespace {

// Batches started at first: the more there are, the sooner the first batch is full. What is left
// over is trained on in the next steps, before anything else is started.
constexpr int64_t kFirstBatches = 3;

// The reserve, in spreads of the last surpluses.
constexpr double kReserveShare = 1;

// In batches, how much of the allowance may be saved up for a later wait.
constexpr double kSavedAllowance = 0.1;

// Growth of the running groups by a factor g pays where throughput grows by g^kWorthwhile.
constexpr double kWorthwhile = 0.2;

// If the first growth pays less, throughput is assumed to grow as this root of the number running
// up to a knee, and to be flat beyond it.
constexpr double kKnee = 3;

// Throughput is a mean over steps, after some that still belong to the limit before. Both numbers
// are larger by one for every kBatchesPerStep batches of the limit, because more is under way.
constexpr int64_t kSkippedSteps = 1;
constexpr int64_t kMeasuredSteps = 3;
constexpr double kBatchesPerStep = 4;

// Growth by less than this factor tells nothing.
constexpr double kVisibleGrowth = 1.05;

// After growth that did not pay, the limit is this part of a batch below the one before.
constexpr double kBelow = 0.25;

// Throughput that has changed by this factor is a reason to look for the limit again.
constexpr double kOtherThroughput = 1.6;

// The mean wait over about kMeanSteps steps, up to which growth has paid without a doubt; and the
// longest that is taken for one.
constexpr double kLongWait = 0.1;
constexpr double kLongestWait = 0.9;
constexpr double kMeanSteps = 4;

}  // namespace

JustInTimeSupply::JustInTimeSupply(int64_t batch, int64_t sync_interval, int64_t max_outstanding)
    : batch_(static_cast<double>(batch)),
      least_(static_cast<double>(std::min(2 * batch * sync_interval, max_outstanding))),
      max_outstanding_(max_outstanding) {
  PACE_CHECK(max_outstanding >= batch * sync_interval, "fewer credits than a sync interval trains");
  state_.limit =
      static_cast<double>(std::min(kFirstBatches * batch * sync_interval, max_outstanding));
}

void JustInTimeSupply::OnGroupFinished(const SupplyView& view) {
  ++state_.num_samples;
  state_.sum_running += static_cast<double>(view.num_running);
}

void JustInTimeSupply::Measure(const SupplyReport& step) {
  ++state_.num_steps;
  const auto more = static_cast<int64_t>(state_.limit / (kBatchesPerStep * batch_));
  if (state_.num_steps <= kSkippedSteps + more) return ResetSums();
  state_.sum_tokens += static_cast<double>(step.num_tokens);
  state_.sum_seconds += step.seconds;
  if (++state_.num_measured < kMeasuredSteps + more) return;
  ++state_.num_blocks;
  if (state_.num_samples > 0) {
    state_.running = state_.sum_running / static_cast<double>(state_.num_samples);
    state_.throughput = state_.sum_tokens / state_.sum_seconds;
  }
  ResetSums();
}

void JustInTimeSupply::ResetSums() {
  state_.num_samples = state_.num_measured = 0;
  state_.sum_running = state_.sum_tokens = state_.sum_seconds = 0;
}

void JustInTimeSupply::MeasureAnew() {
  ResetSums();
  state_.num_steps = state_.num_blocks = 0;
  state_.running = state_.throughput = 0;
}

void JustInTimeSupply::OnTrainerReady(const SupplyView& view, const SupplyReport& step) {
  if (step.seconds <= 0) return;
  // The first step waits for the first responses, whatever the limit.
  if (view.trainer.step() <= 1) {
    MeasureAnew();
    return SetLimit(least_);
  }
  const double wait = std::min(step.waited / step.seconds, kLongestWait);
  state_.wait += (wait - state_.wait) / kMeanSteps;
  state_.owed += batch_ * (wait - kAllowedWait);
  Measure(step);
  CheckCeiling();
  EndTrial(view);
  Settle(view);
  TakeBack(view.num_pooled - static_cast<int64_t>(batch_));
}

bool JustInTimeSupply::WaitsLong() const {
  return state_.wait > kLongWait;
}

void JustInTimeSupply::Settle(const SupplyView& view) {
  const double saved = -kSavedAllowance * batch_;
  if (state_.owed > 0) {
    // A trainer that waits for long lacks a share of the production, not single groups.
    const auto running = static_cast<double>(view.num_running);
    const double lacking = WaitsLong() ? running * state_.wait / (1 - state_.wait) : 0;
    if (view.supply_limited) Grow(std::max(state_.owed, lacking));
    state_.owed = 0;
  } else if (state_.owed < saved) {
    SetLimit(state_.limit + state_.owed - saved);
    state_.owed = saved;
  }
}

void JustInTimeSupply::TakeBack(int64_t balance) {
  if (balance < 0) {
    state_.balances.clear();
    return;
  }
  state_.balances.push_back(balance);
  if (std::ssize(state_.balances) < kWindowSteps) return;
  const auto [least, most] = std::minmax_element(state_.balances.begin(), state_.balances.end());
  const double surplus =
      static_cast<double>(*least) - kReserveShare * static_cast<double>(*most - *least);
  if (surplus < 1) {
    state_.balances.pop_front();
    return;
  }
  SetLimit(state_.limit - surplus);
  state_.balances.clear();
}

void JustInTimeSupply::Grow(double credits) {
  double most = static_cast<double>(max_outstanding_);
  if (state_.ceiling > 0) {
    // Growth up to here paid before.
    most = state_.ceiling;
  } else {
    if (state_.trial_from == 0) {
      // Growth is judged only where production is too small, and needs a value to compare with.
      if (WaitsLong() && !Measured()) return;
      state_.trial_from = state_.limit;
      state_.trial_running = state_.running;
      state_.trial_throughput = state_.throughput;
    }
    most = std::min(most, 2 * state_.trial_from);
  }
  if (state_.limit >= most) return;
  SetLimit(std::min(state_.limit + credits, most));
  MeasureAnew();
}

void JustInTimeSupply::EndTrial(const SupplyView& view) {
  if (state_.trial_from == 0 || !Measured()) return;
  const double from = std::exchange(state_.trial_from, 0);
  const double before = std::exchange(state_.gain, 0);
  // A limit that has hardly grown since the load was another one tells nothing.
  if (!WaitsLong() || state_.limit < kVisibleGrowth * from) return;
  if (state_.trial_throughput <= 0 || state_.throughput <= 0) return;  // not reported
  const double added = state_.running - state_.trial_running;
  const double below = from - kBelow * batch_;
  const bool full = !view.supply_limited;
  if (state_.running < kVisibleGrowth * state_.trial_running) {
    return StopAt(full ? from + std::max(added, 0.0) + kBelow * batch_ : below);
  }
  const double ratio = state_.throughput / state_.trial_throughput;
  const double gain = exact::Log(ratio) / exact::Log(state_.running / state_.trial_running);
  const double middle = exact::Log(state_.running * state_.trial_running) / 2;
  // Workers are full: credits beyond what they run are of no use.
  if (full && gain >= kWorthwhile) return StopAt(from + added + kBelow * batch_);
  const double slope = (state_.limit - from) / added;
  if (before > gain && middle > state_.gain_middle) {
    // The logarithm of the number running at which the line through both gains falls to
    // kWorthwhile, and the limit with which that many run.
    const double best =
        middle + (gain - kWorthwhile) / (before - gain) * (middle - state_.gain_middle);
    const double limit = from + slope * (exact::Exp(best) - state_.trial_running);
    if (limit < 2 * state_.limit) return StopAt(std::max(limit, below));
  } else if (gain < kWorthwhile) {
    // Throughput is assumed to grow as the kKnee-th root of the number running, up to the knee.
    const double knee = state_.trial_running * exact::Pow(std::max(ratio, 1.0), kKnee);
    return StopAt(ratio > 1 ? std::min(from + slope * (knee - state_.trial_running), state_.limit)
                            : below);
  }
  state_.gain = gain;
  state_.gain_middle = middle;
}

void JustInTimeSupply::StopAt(double limit) {
  SetLimit(limit);
  MeasureAnew();
  state_.ceiling = state_.limit;
  state_.ceiling_throughput = 0;
}

void JustInTimeSupply::CheckCeiling() {
  // The first block still belongs to the search.
  if (state_.ceiling == 0 || state_.num_blocks < 2) return;
  if (state_.wait < kLongWait / 2) {
    state_.ceiling = 0;  // engines are no longer the bottleneck
    return;
  }
  if (state_.ceiling_throughput == 0) state_.ceiling_throughput = state_.throughput;
  const double change = state_.throughput / state_.ceiling_throughput;
  state_.ceiling_throughput += (state_.throughput - state_.ceiling_throughput) / kMeanSteps;
  if (change < kOtherThroughput && change * kOtherThroughput > 1) return;
  state_.ceiling = 0;
  // The search begins below, so that two doublings show the line.
  SetLimit(state_.limit / 2);
  MeasureAnew();
}

void JustInTimeSupply::SetLimit(double limit) {
  // A limit that is not a number, from throughputs that cannot be compared, becomes the least.
  state_.limit = limit > least_ ? std::min(limit, static_cast<double>(max_outstanding_)) : least_;
}

Status JustInTimeSupply::Restore(const SupplyState& state) {
  // A snapshot of another supply policy names no limit: the policy starts anew.
  if (state.limit == 0) return Status::Ok();
  const auto highest = static_cast<double>(max_outstanding_);
  for (const double limit :
       {state.limit, std::max(state.trial_from, least_), std::max(state.ceiling, least_)}) {
    if (!(limit >= least_ && limit <= highest)) {
      return InvalidArgument("limit = ", limit, ": must be in [", least_, ", ", highest, "]");
    }
  }
  if (std::ssize(state.balances) >= kWindowSteps) {
    return InvalidArgument("balances: ", state.balances.size(), " values: must be fewer than ",
                           kWindowSteps);
  }
  if (!(state.owed <= 0 && state.owed >= -kSavedAllowance * batch_)) {
    return InvalidArgument("owed = ", state.owed, ": must be in [", -kSavedAllowance * batch_,
                           ", 0]");
  }
  if (!(state.wait >= 0 && state.wait <= kLongestWait)) {
    return InvalidArgument("wait = ", state.wait, ": must be in [0, ", kLongestWait, "]");
  }
  for (const double mean :
       {state.sum_running, state.sum_tokens, state.sum_seconds, state.running, state.throughput,
        state.trial_running, state.trial_throughput, state.ceiling_throughput}) {
    if (!(std::isfinite(mean) && mean >= 0)) {
      return InvalidArgument("mean = ", mean, ": must be finite and >= 0");
    }
  }
  state_ = state;
  return Status::Ok();
}

}  // namespace pace
