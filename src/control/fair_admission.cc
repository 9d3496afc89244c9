#include "control/fair_admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pace {
namespace {

// Tokens of a mean response.
double LengthOf(const GroupSummary& group) {
  return static_cast<double>(group.num_tokens) / static_cast<double>(group.num_members);
}

// Each stratum sees its share of the draws, so it remembers and waits for its
// share of them.
AdmissionOptions OptionsOfStratum(AdmissionOptions options, int64_t batch) {
  const int64_t num_strata = options.num_strata;
  options.policy = AdmissionKind::kPace;
  options.ties = TieRule::kFractional;
  options.target_occupancy = options.TargetOccupancy(batch);
  options.window = std::max<int64_t>(1, options.Window(batch) / num_strata);
  options.min_observations = std::max<int64_t>(1, options.min_observations / num_strata);
  return options;
}

}  // namespace

FairAdmission::FairAdmission(const AdmissionOptions& options, int64_t batch, uint64_t seed)
    : lengths_(options.Window(batch)) {
  const AdmissionOptions of_stratum = OptionsOfStratum(options, batch);
  for (int64_t i = 0; i < options.num_strata; ++i) {
    strata_.push_back(std::make_unique<PaceAdmission>(of_stratum, batch, seed));
  }
}

StepPlan FairAdmission::BeginStep(PolicyVersion step, const PoolView& pool) {
  lengths_.Add(pending_lengths_);
  pending_lengths_.clear();
  double cutoff_sum = 0;
  double tie_sum = 0;
  int64_t num_cutoffs = 0;
  for (const auto& stratum : strata_) {
    plan_ = stratum->BeginStep(step, pool);
    if (!plan_.cutoff.has_value()) continue;
    cutoff_sum += *plan_.cutoff;
    tie_sum += plan_.tie_probability;
    ++num_cutoffs;
  }
  plan_.cutoff.reset();
  plan_.tie_probability = 0;
  if (num_cutoffs > 0) {
    plan_.cutoff = cutoff_sum / static_cast<double>(num_cutoffs);
    plan_.tie_probability = tie_sum / static_cast<double>(num_cutoffs);
  }
  return plan_;
}

PaceAdmission& FairAdmission::StratumOf(const GroupSummary& group) const {
  if (lengths_.size() == 0) return *strata_.front();
  const auto num_strata = static_cast<double>(strata_.size());
  const double place = std::floor(num_strata * lengths_.MidPercentile(LengthOf(group)));
  return *strata_[static_cast<size_t>(std::clamp(place, 0.0, num_strata - 1))];
}

Decision FairAdmission::Judge(const GroupSummary& group) const {
  return StratumOf(group).Judge(group);
}

void FairAdmission::Observe(const GroupSummary& group, const Decision& decision) {
  StratumOf(group).Observe(group, decision);
  pending_lengths_.push_back(LengthOf(group));
}

double FairAdmission::Score(const GroupSummary& group) const {
  return StratumOf(group).Score(group);
}

AdmissionState FairAdmission::Save() const {
  AdmissionState state{.step = plan_.step,
                       .smoothed_rate = plan_.smoothed_rate.value_or(0),
                       .lengths = lengths_.Values(),
                       .pending_lengths = pending_lengths_,
                       .plan = plan_};
  for (const auto& stratum : strata_) state.strata.push_back(stratum->Save());
  return state;
}

Status FairAdmission::Restore(const AdmissionState& state) {
  if (state.strata.size() != strata_.size()) {
    return InvalidArgument("strata: ", state.strata.size(),
                           " saved, admission.num_strata = ", strata_.size());
  }
  PACE_RETURN_IF_ERROR(CheckWindow(state.lengths, "lengths"));
  PACE_RETURN_IF_ERROR(CheckWindow(state.pending_lengths, "pending_lengths"));
  std::vector<AdmissionState> before;
  for (size_t i = 0; i < strata_.size(); ++i) {
    before.push_back(strata_[i]->Save());
    const Status status = strata_[i]->Restore(state.strata[i]);
    if (status.ok()) continue;
    for (size_t done = 0; done < i; ++done) (void)strata_[done]->Restore(before[done]);
    return status.At(Concat("strata[", i, "]"));
  }
  lengths_.Assign(state.lengths);
  pending_lengths_ = state.pending_lengths;
  plan_ = state.plan;
  return Status::Ok();
}

}  // namespace pace
