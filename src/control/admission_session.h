// AdmissionSession: admission for a trainer that keeps its own supply, queue and workers.
//
// It owns an admission policy, its windows and the progress guard. The trainer says when a step
// begins and which groups it draws; the session answers with verdicts. Nothing else of pace is
// needed: no coordinator, no workers, no payloads.
//
//   PACE_ASSIGN_OR_RETURN(AdmissionSession session,
//                         AdmissionSession::Create(options, batch, seed));
//   PACE_ASSIGN_OR_RETURN(StepPlan plan, session.BeginStep(version, occupancy, served));
//   PACE_ASSIGN_OR_RETURN(Decision decision, session.Draw(group));
//   if (decision.verdict == Verdict::kAdmit) Train(group);
//
// The verdicts are those of a Coordinator that draws the same groups at the same steps. A step
// draws until `batch` groups are admitted; a rejected group is dropped. Theorem 3 of
// docs/method.md holds if `served` is right and the trainer keeps starting groups.
//
// Calls that break a rule return an error and change nothing.
//
// Thread-safety: none. No clock, no I/O. Stable: docs/library.md.
#ifndef PACE_CONTROL_ADMISSION_SESSION_H_
#define PACE_CONTROL_ADMISSION_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "config/admission_options.h"
#include "control/admission_policy.h"
#include "control/progress_guard.h"
#include "core/decision.h"
#include "core/ids.h"
#include "core/staleness.h"
#include "core/status.h"
#include "core/version.h"

namespace pace {

// Verdicts since the session began, and in the step begun last.
struct AdmissionCounts {
  int64_t num_offered = 0;
  int64_t num_admitted = 0;
  int64_t num_rejected = 0;
  int64_t num_guarded = 0;  // admitted by the guard alone
};

class AdmissionSession {
 public:
  // Checks the options and the batch.
  static Result<AdmissionSession> Create(AdmissionOptions options, int64_t batch, uint64_t seed);

  // With a policy of one's own. Without `guards` every verdict is the policy's, and a step may
  // wait for ever. REQUIRES: batch >= 1
  AdmissionSession(std::unique_ptr<AdmissionPolicy> policy, int64_t batch, bool guards = true);

  // Begins a training step. `occupancy` counts the finished groups that wait; `served` is the
  // oldest version that a group started now could sample from, none if no worker can take one.
  // Steps increase. An error for policies that rank the pool (admission.cutoff = pool).
  Result<StepPlan> BeginStep(PolicyVersion step, int64_t occupancy,
                             std::optional<PolicyVersion> served);
  // The same with the groups that wait, in completion order. Every policy takes it.
  Result<StepPlan> BeginStep(PolicyVersion step, std::span<const GroupSummary> pool,
                             std::optional<PolicyVersion> served);

  // The groups that this step must draw before any other, ascending; empty for most policies.
  std::span<const GroupId> Chosen() const { return policy_->Chosen(); }

  // `served` has changed since the step began.
  Status SetServed(std::optional<PolicyVersion> served);

  // The verdict on one group in the step begun last; once for each group and step.
  Result<Decision> Draw(const GroupSummary& group);

  // The admission score in the step begun last; higher is worse. Draws nothing.
  Result<double> Score(const GroupSummary& group) const;

  // Whether the policy reads GroupSummary::members.
  bool NeedsMembers() const { return policy_->NeedsMembers(); }

  bool began() const { return began_; }
  const StepPlan& plan() const { return plan_; }
  std::optional<PolicyVersion> served() const { return served_; }
  int64_t batch() const { return batch_; }
  const AdmissionCounts& in_step() const { return in_step_; }
  const AdmissionCounts& total() const { return total_; }

  // The whole state as JSON, and back: a restored session behaves as the saved one would, if
  // its options and batch are the same. `name` stands in front of errors; after one the session
  // is as it was.
  std::string Save() const;
  Status Restore(std::string_view json, const std::string& name);

 private:
  Result<StepPlan> Begin(PolicyVersion step, const PoolView& view);
  Status CheckDrawable(const GroupSummary& group) const;

  std::unique_ptr<AdmissionPolicy> policy_;
  int64_t batch_;
  bool guards_;
  std::unique_ptr<ProgressGuard> guard_;

  bool began_ = false;
  StepPlan plan_;
  std::optional<PolicyVersion> served_;
  AdmissionCounts in_step_, total_;
  std::unordered_set<GroupId> drawn_;  // in the step begun last
};

}  // namespace pace

#endif  // PACE_CONTROL_ADMISSION_SESSION_H_
