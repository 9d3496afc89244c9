// FairAdmission: PACE among groups of like length.
//
// Staleness grows with length: long responses are interrupted more often, and
// groups of long responses wait longer for their slowest member. A single cutoff
// therefore trains on short responses. Here groups are told apart by the length
// of their responses into strata of equal share, and each stratum is a
// PaceAdmission of its own under the common budget: the stalest share of every
// stratum goes, so what is trained on is as long as what was offered.
//
// A stratum's borders are quantiles of recent lengths, frozen as a step begins.
// Ties are always split by the fractional rule. docs/policies.md has the note.
#ifndef PACE_CONTROL_FAIR_ADMISSION_H_
#define PACE_CONTROL_FAIR_ADMISSION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "control/admission_policy.h"
#include "control/pace_admission.h"
#include "control/score_window.h"

namespace pace {

class FairAdmission final : public AdmissionPolicy {
 public:
  FairAdmission(const AdmissionOptions& options, int64_t batch, uint64_t seed);

  // The plan reports the mean of the strata's cutoffs.
  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override;
  Decision Judge(const GroupSummary& group) const override;
  void Observe(const GroupSummary& group, const Decision& decision) override;
  double Score(const GroupSummary& group) const override;
  bool NeedsMembers() const override { return strata_.front()->NeedsMembers(); }
  std::optional<double> MaxBudget() const override { return strata_.front()->MaxBudget(); }
  AdmissionState Save() const override;
  Status Restore(const AdmissionState& state) override;

 private:
  PaceAdmission& StratumOf(const GroupSummary& group) const;

  std::vector<std::unique_ptr<PaceAdmission>> strata_;
  StepPlan plan_;
  ScoreWindow lengths_;
  std::vector<double> pending_lengths_;
};

}  // namespace pace

#endif  // PACE_CONTROL_FAIR_ADMISSION_H_
