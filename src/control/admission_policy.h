// An AdmissionPolicy rules on the groups drawn for one training step.
//
// BeginStep fixes budget and cutoff and freezes what they were computed from;
// Judge depends only on the group and that frozen state, so the order of draws does not
// matter. No clock, no locks, no I/O: every driver shares it.
//
//   StepPlan plan = policy->BeginStep(step, {.occupancy = 40, .batch = 12});
//   Decision decision = policy->Judge(group);
//   policy->Observe(group, decision);
//
// Thread-safety: none; one owner, the coordinator. Stable: docs/library.md.
#ifndef PACE_CONTROL_ADMISSION_POLICY_H_
#define PACE_CONTROL_ADMISSION_POLICY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/admission_options.h"
#include "core/decision.h"
#include "core/staleness.h"
#include "core/status.h"
#include "core/version.h"

namespace pace {

// All a policy may know of the world as a step begins.
struct PoolView {
  int64_t occupancy = 0;  // N_j: groups in the pool before the first draw
  int64_t batch = 1;      // groups the step needs
  // For policies with RanksPool: the groups of the pool, in completion order, and the oldest
  // version that a group started now could sample from.
  std::span<const GroupSummary> groups{};
  std::optional<PolicyVersion> served{};

  // r_j: the share of the pool beyond `target_occupancy` groups.
  double SurplusOver(int64_t target_occupancy) const;
};

// The state of a policy between steps; every policy saves into this form.
struct AdmissionState {
  PolicyVersion step{};  // the last step begun
  double smoothed_rate = 0;
  // Oldest first. Pending values were drawn in the last step and enter the windows when the
  // next step begins.
  std::vector<double> scores{};
  std::vector<double> prefix_scores{};
  std::vector<double> pending_scores{};
  std::vector<double> pending_prefix_scores{};
  // Response lengths and the state of each stratum, of policies that divide groups by length.
  std::vector<double> lengths{};
  std::vector<double> pending_lengths{};
  std::vector<AdmissionState> strata{};
  // The result of the last BeginStep.
  StepPlan plan{};
  // What a policy in Python says of itself, as JSON; empty for others.
  std::string python{};
};

class AdmissionPolicy {
 public:
  virtual ~AdmissionPolicy() = default;

  // Steps only grow. What was observed before enters the windows now.
  virtual StepPlan BeginStep(PolicyVersion step, const PoolView& pool) = 0;

  // The verdict on one group in the step begun last.
  // REQUIRES: BeginStep was called; group.assembled <= that step.
  [[nodiscard]] virtual Decision Judge(const GroupSummary& group) const = 0;

  // Called once for every drawn group, admitted or not.
  virtual void Observe(const GroupSummary& group, const Decision& decision) = 0;

  // The admission score in the step begun last; higher is worse. The pool evicts the highest
  // first and, under draw order lowest_score, draws the lowest.
  [[nodiscard]] virtual double Score(const GroupSummary& group) const = 0;

  // Whether BeginStep reads PoolView::groups.
  [[nodiscard]] virtual bool RanksPool() const { return false; }

  // The groups of the pool that the step begun last draws before any other, in ascending order.
  // Empty unless RanksPool.
  [[nodiscard]] virtual std::span<const GroupId> Chosen() const { return {}; }

  // Whether Judge reads GroupSummary::members.
  [[nodiscard]] virtual bool NeedsMembers() const { return false; }

  // The largest share of draws that this policy rejects on purpose, if it has a bound. The
  // backstop of ProgressGuard follows from it.
  [[nodiscard]] virtual std::optional<double> MaxBudget() const { return std::nullopt; }

  // Why a policy that runs outside of this program can decide no more; null while it can. Answers
  // after a failure mean nothing: the owner stops.
  [[nodiscard]] virtual const Status* failure() const { return nullptr; }

  // A restored policy behaves as the saved one would. Restore leaves the policy unchanged
  // when it returns an error.
  [[nodiscard]] virtual AdmissionState Save() const = 0;
  virtual Status Restore(const AdmissionState& state) = 0;
};

// A Decision with the group's staleness at `step` filled in, for policies to
// complete.
Decision Measure(const GroupSummary& group, PolicyVersion step);

// What a saved window may hold: finite values of at least 0.
Status CheckWindow(const std::vector<double>& values, const char* name);

// Whether MakeAdmissionPolicy knows the policy: a policy in Python is opened
// (judge/python_policy.h).
Status CheckBuiltIn(const AdmissionOptions& options);

// The policy that the options name. `seed` keys the fractional tie rule.
// REQUIRES: CheckBuiltIn
std::unique_ptr<AdmissionPolicy> MakeAdmissionPolicy(const AdmissionOptions& options, int64_t batch,
                                                     uint64_t seed);

}  // namespace pace

#endif  // PACE_CONTROL_ADMISSION_POLICY_H_
