#include "control/just_in_time.h"

#include <algorithm>
#include <cmath>

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
constexpr double kWorthwhile = 0.12;

// Means are taken over about this many batches of groups.
constexpr double kMeanBatches = 2;

// Growth by less than this factor tells nothing.
constexpr double kVisibleGrowth = 1.05;

// After growth that did not pay, the limit is this part of a batch below the one before.
constexpr double kBelow = 0.25;

// Throughput that is larger by this factor is a reason to try growth again.
constexpr double kFaster = 1.5;

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

void JustInTimeSupply::OnGroupFinished(const SupplyView& view, const GroupTimes& times) {
  ++state_.num_finished;
  const double weight = state_.tokens == 0 ? 1 : 1 / (kMeanBatches * batch_);
  state_.seconds += weight * (times.seconds - state_.seconds);
  state_.tokens += weight * (static_cast<double>(times.num_tokens) - state_.tokens);
  state_.running += weight * (static_cast<double>(view.num_running) - state_.running);
}

// By Little's law: what runs, over the time that a token takes.
double JustInTimeSupply::Throughput() const {
  return state_.seconds > 0 ? state_.running * state_.tokens / state_.seconds : 0;
}

void JustInTimeSupply::OnTrainerReady(const SupplyView& view, const StepDuration& duration) {
  if (duration.seconds <= 0) return;
  // The first step waits for the first responses, whatever the limit.
  if (view.trainer.step() <= 1) return SetLimit(least_);
  const double wait = std::min(duration.waited / duration.seconds, kLongestWait);
  state_.wait += (wait - state_.wait) / kMeanSteps;
  state_.owed += batch_ * (wait - kAllowedWait);
  EndTrial();
  Settle(view.supply_limited);
  TakeBack(view.num_pooled - static_cast<int64_t>(batch_));
}

void JustInTimeSupply::Settle(bool may_grow) {
  const double saved = -kSavedAllowance * batch_;
  if (state_.owed > 0) {
    // A trainer that waits for long lacks a share of the production, not single groups.
    const double lacking =
        state_.wait > kLongWait ? state_.running * state_.wait / (1 - state_.wait) : 0;
    if (may_grow) Grow(std::max(state_.owed, lacking));
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
  if (state_.ceiling > 0 && Throughput() > kFaster * state_.trial_throughput) state_.ceiling = 0;
  double most = static_cast<double>(max_outstanding_);
  if (state_.ceiling > 0) {
    // Growth up to here paid before.
    most = state_.ceiling;
  } else {
    if (state_.trial_from == 0) {
      state_.trial_from = state_.limit;
      state_.trial_running = state_.running;
      state_.trial_throughput = Throughput();
    }
    most = std::min(most, 2 * state_.trial_from);
  }
  if (state_.limit >= most) return;
  SetLimit(std::min(state_.limit + credits, most));
  state_.num_finished = 0;
}

void JustInTimeSupply::EndTrial() {
  if (state_.trial_from == 0) return;
  // Groups that started under the smaller limit finish first.
  const double num_needed = state_.limit + kMeanBatches * batch_;
  if (static_cast<double>(state_.num_finished) < num_needed) return;
  const bool waits = state_.wait > kLongWait;
  if (waits && state_.limit > state_.trial_from && !TrialPays()) {
    // Throughput is flat here, so that a little less costs nothing.
    state_.ceiling = state_.trial_from - kBelow * batch_;
    SetLimit(state_.ceiling);
  }
  state_.trial_from = 0;
}

void JustInTimeSupply::SetLimit(double limit) {
  state_.limit = std::clamp(limit, least_, static_cast<double>(max_outstanding_));
}

bool JustInTimeSupply::TrialPays() const {
  if (state_.trial_throughput <= 0) return false;
  const double growth = state_.running / state_.trial_running;
  if (growth < kVisibleGrowth) return false;
  const double gain = Throughput() / state_.trial_throughput;
  return exact::Log(gain) >= kWorthwhile * exact::Log(growth);
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
       {state.seconds, state.tokens, state.running, state.trial_running, state.trial_throughput}) {
    if (!(std::isfinite(mean) && mean >= 0)) {
      return InvalidArgument("mean = ", mean, ": must be finite and >= 0");
    }
  }
  state_ = state;
  return Status::Ok();
}

}  // namespace pace
