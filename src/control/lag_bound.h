// LagBound and the policies that are one: admit a group when its lag is at most k.
//
// The policies differ in how they measure the lag. None of them keeps any state between steps.
// docs/policies.md has a note on each.
#ifndef PACE_CONTROL_LAG_BOUND_H_
#define PACE_CONTROL_LAG_BOUND_H_

#include "control/admission_policy.h"

namespace pace {

class LagBound : public AdmissionPolicy {
 public:
  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) final;
  Decision Judge(const GroupSummary& group) const final;
  void Observe(const GroupSummary&, const Decision&) final {}
  double Score(const GroupSummary& group) const override { return LagOf(group, plan_.step); }
  AdmissionState Save() const final { return {.step = plan_.step, .plan = plan_}; }
  Status Restore(const AdmissionState& state) final;

 protected:
  explicit LagBound(double k) : k_(k) {}
  virtual double LagOf(const GroupSummary& group, PolicyVersion step) const = 0;

 private:
  const double k_;
  StepPlan plan_;
};

// stale_k: the lag is the mean over tokens, then over members; or, by option, that of the
// stalest member.
class StaleK final : public LagBound {
 public:
  StaleK(double k, StaleKMeasure measure) : LagBound(k), measure_(measure) {}

 private:
  double LagOf(const GroupSummary& group, PolicyVersion step) const override {
    return measure_ == StaleKMeasure::kMean ? group.LagAt(step) : group.MaxMemberLag(step);
  }

  const StaleKMeasure measure_;
};

// oldest_token: the lag of the oldest token, the bound of prime-rl and XTuner. One token
// sampled before a weight sync makes the whole group old, so long responses go first.
class OldestToken final : public LagBound {
 public:
  explicit OldestToken(double k) : LagBound(k) {}

 private:
  double LagOf(const GroupSummary& group, PolicyVersion step) const override {
    return static_cast<double>(group.MaxTokenLag(step));
  }
};

// start_window: NeMo RL's rule. A group is trained on within k versions of its start; under
// draw order lowest_score the oldest start comes first.
//
// The verdict is that of oldest_token; the draw order differs: groups about to leave the
// window are drawn first, while oldest_token's score puts them last. Do not bound the pool
// with it: a full pool evicts the highest score, here the freshest group.
class StartWindow final : public LagBound {
 public:
  explicit StartWindow(double k) : LagBound(k) {}

  double Score(const GroupSummary& group) const override {
    return static_cast<double>(group.oldest.step());
  }

 private:
  double LagOf(const GroupSummary& group, PolicyVersion step) const override {
    return static_cast<double>(group.MaxTokenLag(step));
  }
};

}  // namespace pace

#endif  // PACE_CONTROL_LAG_BOUND_H_
