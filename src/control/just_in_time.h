// JustInTimeSupply: as many groups at once as keep the trainer busy, and no more.
//
// The limit U on outstanding credits follows what each step finds, with C the batch and w the
// share of the step that the trainer waited for groups:
//
//   wait      U grows by C w, less an allowance: waits of kAllowedWait of the time are accepted,
//             and U falls by as much in a step without a wait
//   surplus   when the trainer was ready, the pool held at least C groups in each of the last
//             kWindowSteps steps: U shrinks by the smallest of these surpluses, less a reserve in
//             proportion to their spread
//
// Groups that were left over in every step could have started later; groups that were missing
// should have started earlier. Growing does not pay where engines are the bottleneck: more
// responses at once then make each of them slower, and only lag grows. So U may double, and a few
// steps later the throughput X tells what that gained, as an exponent d ln X / d ln n with n the
// number running. The exponent falls as n grows: two doublings give a line, and U stops where it is
// at kWorthwhile. While workers are full U does not grow at all.
//
// U stays within [2 C S, (1 + threshold) C S], S being the sync interval: one batch in training and
// one in generation, up to the threshold, which is a bound here and not a setting to be tuned.
// Three batches are started at first, so that the first step has to wait for fewer of them.
// docs/policies.md has the reasons.
//
// Thread-safety: none; one owner, the coordinator. The only time it knows comes with events.
#ifndef PACE_CONTROL_JUST_IN_TIME_H_
#define PACE_CONTROL_JUST_IN_TIME_H_

#include <cstdint>
#include <optional>

#include "control/supply_policy.h"

namespace pace {

class JustInTimeSupply final : public SupplyPolicy {
 public:
  // Steps without a wait before credits are taken back.
  static constexpr int64_t kWindowSteps = 6;
  // The share of its time that the trainer may wait.
  static constexpr double kAllowedWait = 0.0085;

  // REQUIRES: batch >= 1, sync_interval >= 1, max_outstanding >= batch * sync_interval
  JustInTimeSupply(int64_t batch, int64_t sync_interval, int64_t max_outstanding);

  int64_t NumToStart(const SupplyView& view) const override {
    return static_cast<int64_t>(state_.limit) - view.num_outstanding();
  }
  void OnGroupFinished(const SupplyView& view) override;
  void OnTrainerReady(const SupplyView& view, const SupplyReport& step) override;
  std::optional<int64_t> MaxOutstanding() const override { return max_outstanding_; }
  SupplyState Save() const override { return state_; }
  Status Restore(const SupplyState& state) override;

 private:
  // Adds a step to the means.
  void Measure(const SupplyReport& step);
  void MeasureAnew();
  void ResetSums();
  // Whether the means are those of this limit.
  bool Measured() const { return state_.num_blocks > 0; }
  bool WaitsLong() const;
  // Settles what is owed: credits after a wait, or those that no wait asked for.
  void Settle(const SupplyView& view);
  void Grow(double credits);
  // Once the larger limit is measured: goes on, or stops where growth ceases to pay.
  void EndTrial(const SupplyView& view);
  void StopAt(double limit);
  // Forgets where growth ceased to pay once engines or responses are others.
  void CheckCeiling();
  // Takes back what every one of the last steps left over.
  void TakeBack(int64_t balance);
  void SetLimit(double limit);

  const double batch_;
  const double least_;
  const int64_t max_outstanding_;
  SupplyState state_;
};

}  // namespace pace

#endif  // PACE_CONTROL_JUST_IN_TIME_H_
