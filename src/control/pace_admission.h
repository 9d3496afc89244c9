// PaceAdmission: occupancy sets how much to reject, effective staleness what.
//
// Step j with N_j groups in the pool:
//
//   r_j   = clip((N_j - N_tar) / max(N_j, 1), 0, 1)
//   r^_j  = beta r^_{j-1} + (1 - beta) r_j
//   b_j   = min(r^_j, max_budget)
//   kappa = the (1 - b_j) quantile of recent scores
//
// A group's score is w1 K_wait + W K_gen; under `prefix` W = F(q), q the
// percentile of its prefix score among recent ones. It is rejected when the
// score is above kappa. docs/method.md gives the reason for each rule.
#ifndef PACE_CONTROL_PACE_ADMISSION_H_
#define PACE_CONTROL_PACE_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "control/admission_policy.h"
#include "control/score_window.h"
#include "control/staleness_score.h"
#include "control/surplus_rate.h"
#include "core/random.h"

namespace pace {

class PaceAdmission final : public AdmissionPolicy {
 public:
  PaceAdmission(const AdmissionOptions& options, int64_t batch, uint64_t seed);

  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override;
  Decision Judge(const GroupSummary& group) const override;
  void Observe(const GroupSummary& group, const Decision& decision) override;
  double Score(const GroupSummary& group) const override {
    return score_.Of(group, plan_.step).score;
  }
  bool NeedsMembers() const override { return score_.ReadsMembers(); }
  std::optional<double> MaxBudget() const override { return options_.max_budget; }
  AdmissionState Save() const override;
  Status Restore(const AdmissionState& state) override;

 private:
  bool ScoresReady() const { return scores_.size() >= options_.min_observations; }
  bool TieIsRejected(GroupId group) const;

  const AdmissionOptions options_;
  const CounterRandom tie_random_;

  // Frozen by BeginStep.
  StepPlan plan_;
  SurplusRate rate_;
  ScoreWindow scores_;
  StalenessScore score_;

  // Drawn in the step begun last.
  std::vector<double> pending_scores_;
  std::vector<double> pending_prefix_scores_;
};

}  // namespace pace

#endif  // PACE_CONTROL_PACE_ADMISSION_H_
