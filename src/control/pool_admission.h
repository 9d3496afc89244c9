// PoolAdmission: PACE with a hard quota on the groups that are in the pool now.
//
// Step j with N_j groups in the pool, C of which it needs:
//
//   r_j   = clip((N_j - N_tar) / max(N_j, 1), 0, 1)
//   r^_j  = beta r^_{j-1} + (1 - beta) r_j
//   b_j   = min(r^_j, max_budget, 1 - C/N_j, E_j/(E_j + C))
//   Q_j   = floor(b_j C / (1 - b_j))
//
// E_j counts the groups of the pool that are staler than a group that would start now. The Q_j of
// them with the highest scores are drawn first and rejected; every other group is admitted, those
// that finish during the step included. So a step that draws D_j groups rejects b_j D_j of them,
// rounded down, and never waits because of a rejection. Percentiles of prefix scores are taken
// over the pool, too: nothing is remembered from other steps but the smoothed rate.
//
// docs/method.md has the proofs.
//
// Thread-safety: none; one owner, the coordinator.
#ifndef PACE_CONTROL_POOL_ADMISSION_H_
#define PACE_CONTROL_POOL_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/admission_policy.h"
#include "control/staleness_score.h"
#include "control/surplus_rate.h"

namespace pace {

class PoolAdmission final : public AdmissionPolicy {
 public:
  PoolAdmission(const AdmissionOptions& options, int64_t batch);

  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override;
  Decision Judge(const GroupSummary& group) const override;
  void Observe(const GroupSummary&, const Decision&) override {}
  double Score(const GroupSummary& group) const override {
    return score_.Of(group, plan_.step).score;
  }
  bool RanksPool() const override { return true; }
  std::span<const GroupId> Chosen() const override { return chosen_; }
  bool NeedsMembers() const override { return score_.ReadsMembers(); }
  std::optional<double> MaxBudget() const override { return options_.max_budget; }
  AdmissionState Save() const override;
  Status Restore(const AdmissionState& state) override;

 private:
  // Chooses the `quota` highest scores among the groups of `pool` that may be rejected.
  void Choose(const PoolView& pool, int64_t quota);

  const AdmissionOptions options_;
  const int64_t max_rejections_;

  StepPlan plan_;
  SurplusRate rate_;
  StalenessScore score_;
  // Rejected in the step begun last, by id. They leave the pool as the step begins, so no
  // snapshot has any.
  std::vector<GroupId> chosen_;
};

}  // namespace pace

#endif  // PACE_CONTROL_POOL_ADMISSION_H_
