#include "control/fair_admission.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace pace {
namespace {

// Tokens of a mean response.
double LengthOf(const GroupSummary& group) {
  return static_cast<double>(group.num_tokens) / static_cast<double>(group.num_members);
}

AdmissionOptions OptionsOfAll(AdmissionOptions options) {
  options.ties = TieRule::kFractional;
  return options;
}

// A stratum's window holds its share of the draws.
AdmissionOptions OptionsOfStratum(AdmissionOptions options, int64_t batch) {
  options = OptionsOfAll(options);
  options.window = std::max<int64_t>(1, options.Window(batch) / options.num_strata);
  options.min_observations = std::min(options.min_observations, *options.window);
  return options;
}

}  // namespace

FairAdmission::FairAdmission(const AdmissionOptions& options, int64_t batch, uint64_t seed)
    : all_(OptionsOfAll(options), batch, seed), lengths_(options.Window(batch)) {
  for (int64_t i = 0; i < options.num_strata; ++i) {
    strata_.emplace_back(OptionsOfStratum(options, batch), batch, seed);
  }
}

StepPlan FairAdmission::BeginStep(PolicyVersion step, const PoolView& pool) {
  lengths_.Add(pending_lengths_);
  pending_lengths_.clear();
  for (PaceAdmission& stratum : strata_) stratum.BeginStep(step, pool);
  return all_.BeginStep(step, pool);
}

size_t FairAdmission::StratumOf(const GroupSummary& group) const {
  if (lengths_.size() == 0) return 0;
  const auto num_strata = static_cast<double>(strata_.size());
  const double place = std::floor(num_strata * lengths_.MidPercentile(LengthOf(group)));
  return static_cast<size_t>(std::clamp(place, 0.0, num_strata - 1));
}

Decision FairAdmission::Judge(const GroupSummary& group) const {
  const Decision decision = strata_[StratumOf(group)].Judge(group);
  return decision.reason == Reason::kWarmingUp ? all_.Judge(group) : decision;
}

void FairAdmission::Observe(const GroupSummary& group, const Decision& /*decision*/) {
  // Each keeps the score that it would have given.
  PaceAdmission& stratum = strata_[StratumOf(group)];
  stratum.Observe(group, stratum.Judge(group));
  all_.Observe(group, all_.Judge(group));
  pending_lengths_.push_back(LengthOf(group));
}

AdmissionState FairAdmission::Save() const {
  AdmissionState state = all_.Save();
  state.lengths = lengths_.Values();
  state.pending_lengths = pending_lengths_;
  for (const PaceAdmission& stratum : strata_) state.strata.push_back(stratum.Save());
  return state;
}

Status FairAdmission::Restore(const AdmissionState& state) {
  if (state.strata.size() != strata_.size()) {
    return InvalidArgument("strata: ", state.strata.size(),
                           " saved, admission.num_strata = ", strata_.size());
  }
  PACE_RETURN_IF_ERROR(CheckWindow(state.lengths, "lengths"));
  PACE_RETURN_IF_ERROR(CheckWindow(state.pending_lengths, "pending_lengths"));
  const AdmissionState before = Save();
  Status status = all_.Restore(state);
  for (size_t i = 0; status.ok() && i < strata_.size(); ++i) {
    status = strata_[i].Restore(state.strata[i]).At(Concat("strata[", i, "]"));
  }
  if (!status.ok()) {
    // The state before came from this policy's Save.
    PACE_CHECK(all_.Restore(before).ok(), "cannot go back");
    for (size_t i = 0; i < strata_.size(); ++i) {
      PACE_CHECK(strata_[i].Restore(before.strata[i]).ok(), "cannot go back");
    }
    return status;
  }
  lengths_.Assign(state.lengths);
  pending_lengths_ = state.pending_lengths;
  return Status::Ok();
}

}  // namespace pace
