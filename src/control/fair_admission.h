// FairAdmission: PACE among groups of similar length.
//
// Staleness grows with length: long responses are interrupted more often, and their groups
// wait longer for the slowest member. A single cutoff therefore favours short responses. Here
// groups are divided by response length into strata of equal share, and each stratum has its
// own PaceAdmission under the common budget. The stalest share of every stratum is rejected,
// so trained responses are as long as offered ones.
//
// The borders of strata are quantiles of recent lengths, frozen when a step begins. Until a
// stratum has seen min_observations groups, its groups are judged among all groups. Ties are
// always split by the fractional rule. docs/policies.md has the note.
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
