#include "control/admission_session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "control/admission_json.h"
#include "core/check.h"
#include "core/json_record.h"
#include "core/printable.h"

namespace pace {

template <typename V>
void JsonKeys(V& v, AdmissionCounts& counts) {
  v("num_offered", counts.num_offered);
  v("num_admitted", counts.num_admitted);
  v("num_rejected", counts.num_rejected);
  v("num_guarded", counts.num_guarded);
}

namespace {

constexpr std::string_view kSessionFormat = "pace-admission-session";
constexpr int64_t kSessionVersion = 1;
// Bounds of what other programs may claim; sums stay inside 64 bits.
constexpr int64_t kMaxSessionBatch = int64_t{1} << 32;

struct SessionText {
  std::string format = std::string(kSessionFormat);
  int64_t format_version = kSessionVersion;
  int64_t batch = 1;
  bool began = false;
  std::optional<PolicyVersion> served = {};
  AdmissionCounts in_step = {};
  AdmissionCounts total = {};
  std::vector<GroupId> drawn = {};
  AdmissionState admission = {};
};

template <typename V>
void JsonKeys(V& v, SessionText& text) {
  v("format", text.format);
  v("format_version", Within(text.format_version, kSessionVersion, kSessionVersion,
                             "written by another version of pace"));
  v("batch", text.batch);
  v("began", text.began);
  v("served", text.served);
  v("in_step", text.in_step);
  v("total", text.total);
  v("drawn", text.drawn);
  v("admission", text.admission);
}

Status CheckCounts(const AdmissionCounts& counts, const char* name) {
  if (counts.num_offered != counts.num_admitted + counts.num_rejected ||
      counts.num_guarded > counts.num_admitted) {
    return InvalidArgument(name, ": offered must be admitted + rejected, guarded part of admitted");
  }
  return Status::Ok();
}

void Count(const Decision& decision, bool guarded, AdmissionCounts& counts) {
  ++counts.num_offered;
  ++(decision.verdict == Verdict::kAdmit ? counts.num_admitted : counts.num_rejected);
  if (guarded) ++counts.num_guarded;
}

}  // namespace

Result<AdmissionSession> AdmissionSession::Create(AdmissionOptions options, int64_t batch,
                                                  uint64_t seed) {
  PACE_RETURN_IF_ERROR(CheckFields(options.Fields(), "admission"));
  PACE_RETURN_IF_ERROR(CheckBuiltIn(options));
  if (batch < 1 || batch > kMaxSessionBatch) {
    return InvalidArgument("batch = ", batch, ": must be from 1 to ", kMaxSessionBatch,
                           " (the groups that one training step needs)");
  }
  return AdmissionSession(MakeAdmissionPolicy(options, batch, seed), batch);
}

AdmissionSession::AdmissionSession(std::unique_ptr<AdmissionPolicy> policy, int64_t batch,
                                   bool guards)
    : policy_(std::move(policy)), batch_(batch), guards_(guards) {
  PACE_CHECK(policy_ != nullptr && batch >= 1, "a session needs a policy and a batch");
  guard_ = std::make_unique<ProgressGuard>(batch, policy_->MaxBudget());
}

Result<StepPlan> AdmissionSession::BeginStep(PolicyVersion step, int64_t occupancy,
                                             std::optional<PolicyVersion> served) {
  if (policy_->RanksPool()) {
    return InvalidArgument(
        "occupancy = ", occupancy,
        ": this policy ranks the pool and needs its groups (admission.cutoff = pool)");
  }
  if (occupancy < 0 || occupancy > kLargestJsonInteger) {
    return InvalidArgument("occupancy = ", occupancy, ": must be from 0 to 2^53");
  }
  return Begin(step, {.occupancy = occupancy, .batch = batch_, .served = served});
}

Result<StepPlan> AdmissionSession::BeginStep(PolicyVersion step, std::span<const GroupSummary> pool,
                                             std::optional<PolicyVersion> served) {
  std::unordered_set<GroupId> ids;
  for (const GroupSummary& group : pool) {
    if (group.assembled > step) {
      return InvalidArgument("group ", group.id, ": completed at version ", group.assembled,
                             ", after the step ", step, " that begins");
    }
    if (!ids.insert(group.id).second) {
      return InvalidArgument("group ", group.id, ": is in the pool twice");
    }
  }
  return Begin(step, {.occupancy = static_cast<int64_t>(pool.size()),
                      .batch = batch_,
                      .groups = pool,
                      .served = served});
}

Result<StepPlan> AdmissionSession::Begin(PolicyVersion step, const PoolView& view) {
  if (step.step() < 0 || step.step() > kLargestJsonInteger) {
    return InvalidArgument("step = ", step, ": must be from 0 to 2^53");
  }
  if (began_ && step <= plan_.step) {
    return InvalidArgument("step = ", step, ": must be above ", plan_.step,
                           ", the step begun last");
  }
  if (view.served.has_value() && (*view.served > step || view.served->step() < 0)) {
    return InvalidArgument("served = ", *view.served, ": must be from 0 to the step, ", step);
  }
  plan_ = policy_->BeginStep(step, view);
  guard_->BeginStep(step);
  began_ = true;
  served_ = view.served;
  in_step_ = {};
  drawn_.clear();
  return plan_;
}

Status AdmissionSession::SetServed(std::optional<PolicyVersion> served) {
  if (!began_) return InvalidArgument("served: no step has begun (call BeginStep first)");
  if (served.has_value() && (*served > plan_.step || served->step() < 0)) {
    return InvalidArgument("served = ", *served, ": must be from 0 to the step, ", plan_.step);
  }
  served_ = served;
  return Status::Ok();
}

Status AdmissionSession::CheckDrawable(const GroupSummary& group) const {
  if (!began_) return InvalidArgument("group ", group.id, ": no step has begun");
  if (group.assembled > plan_.step) {
    return InvalidArgument("group ", group.id, ": completed at version ", group.assembled,
                           ", after the step ", plan_.step, " that draws it");
  }
  return Status::Ok();
}

Result<Decision> AdmissionSession::Draw(const GroupSummary& group) {
  PACE_RETURN_IF_ERROR(CheckDrawable(group));
  if (policy_->NeedsMembers() && group.members.empty()) {
    return InvalidArgument("group ", group.id, ": this policy needs the group's members");
  }
  if (!drawn_.insert(group.id).second) {
    return InvalidArgument("group ", group.id, ": was drawn in step ", plan_.step, " already");
  }
  Decision decision = policy_->Judge(group);
  const int64_t num_guarded = guard_->num_guarded();
  if (guards_) decision = guard_->Apply(group, decision, served_);
  policy_->Observe(group, decision);
  const bool guarded = guard_->num_guarded() > num_guarded;
  Count(decision, guarded, in_step_);
  Count(decision, guarded, total_);
  return decision;
}

Result<double> AdmissionSession::Score(const GroupSummary& group) const {
  PACE_RETURN_IF_ERROR(CheckDrawable(group));
  return policy_->Score(group);
}

std::string AdmissionSession::Save() const {
  SessionText text{.batch = batch_,
                   .began = began_,
                   .served = served_,
                   .in_step = in_step_,
                   .total = total_,
                   .drawn = {drawn_.begin(), drawn_.end()},
                   .admission = policy_->Save()};
  std::sort(text.drawn.begin(), text.drawn.end());
  return JsonOf(text);
}

Status AdmissionSession::Restore(std::string_view json, const std::string& name) {
  SessionText text;
  PACE_RETURN_IF_ERROR(FromJson(json, text).At(name));
  if (text.format != kSessionFormat) {
    return InvalidArgument(name, ": format = ", Printable(text.format), ": must be ",
                           kSessionFormat, " (is this a saved session?)");
  }
  if (text.batch != batch_) {
    return InvalidArgument(name, ": batch = ", text.batch, ": the session's is ", batch_);
  }
  PACE_RETURN_IF_ERROR(CheckCounts(text.in_step, "in_step").At(name));
  PACE_RETURN_IF_ERROR(CheckCounts(text.total, "total").At(name));
  PACE_RETURN_IF_ERROR(policy_->Restore(text.admission).At(name));
  began_ = text.began;
  plan_ = text.admission.plan;
  served_ = text.served;
  in_step_ = text.in_step;
  total_ = text.total;
  drawn_ = {text.drawn.begin(), text.drawn.end()};
  guard_->Restore(plan_.step, in_step_.num_rejected, in_step_.num_guarded);
  return Status::Ok();
}

}  // namespace pace
