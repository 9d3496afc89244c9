// FairAdmission: PACE among groups of like length.
//
// Staleness grows with length: long responses are interrupted more often, and
// groups of long responses wait longer for their slowest member. A single cutoff
// therefore trains on short responses. Here groups are told apart by the length
// of their responses into strata of equal share, and each stratum is a
// PaceAdmission of its own under the common budget: the stalest share of every
// stratum goes, so what is trained on is as long as what was offered.
//
// A stratum's borders are quantiles of recent lengths, frozen as a step begins. Until
// a stratum has seen min_observations groups, its groups are judged among all. Ties
// are always split by the fractional rule. docs/policies.md has the note.
#ifndef PACE_CONTROL_FAIR_ADMISSION_H_
#define PACE_CONTROL_FAIR_ADMISSION_H_

#include <cstdint>
#include <vector>

#include "control/admission_policy.h"
#include "control/pace_admission.h"
#include "control/score_window.h"

namespace pace {

class FairAdmission final : public AdmissionPolicy {
 public:
  FairAdmission(const AdmissionOptions& options, int64_t batch, uint64_t seed);

  // The plan reports the cutoff among all groups.
  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override;
  Decision Judge(const GroupSummary& group) const override;
  void Observe(const GroupSummary& group, const Decision& decision) override;
  // Comparable between strata.
  double Score(const GroupSummary& group) const override { return all_.Score(group); }
  bool NeedsMembers() const override { return all_.NeedsMembers(); }
  std::optional<double> MaxBudget() const override { return all_.MaxBudget(); }
  AdmissionState Save() const override;
  Status Restore(const AdmissionState& state) override;

 private:
  size_t StratumOf(const GroupSummary& group) const;

  PaceAdmission all_;
  std::vector<PaceAdmission> strata_;
  ScoreWindow lengths_;
  std::vector<double> pending_lengths_;
};

}  // namespace pace

#endif  // PACE_CONTROL_FAIR_ADMISSION_H_
