// The supply policies that supply.policy names. docs/policies.md has a note on each.
//
// Thread-safety: immutable.
#ifndef PACE_CONTROL_SUPPLY_POLICIES_H_
#define PACE_CONTROL_SUPPLY_POLICIES_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "control/supply_policy.h"

namespace pace {

// threshold: outstanding credits stay within (1 + threshold) batches per sync interval.
// Threshold 0 with one step per sync is Sync: no group starts before the weights of the
// previous step have reached every worker.
class ThresholdSupply final : public SupplyPolicy {
 public:
  explicit ThresholdSupply(int64_t max_outstanding) : max_outstanding_(max_outstanding) {}

  int64_t NumToStart(const SupplyView& view) const override {
    return max_outstanding_ - view.num_outstanding();
  }
  std::optional<int64_t> MaxOutstanding() const override { return max_outstanding_; }

 private:
  const int64_t max_outstanding_;
};

// quota: AReaL's rule. Groups started and kept stay within those that the steps up to
// version + bound consume.
//
// It bounds a count, not the lag of any group: any number of steps may overtake a slow group.
class QuotaSupply final : public SupplyPolicy {
 public:
  QuotaSupply(int64_t bound, int64_t batch) : bound_(bound), batch_(batch) {}

  int64_t NumToStart(const SupplyView& view) const override {
    const int64_t allowed = (bound_ + view.published.step() + 1) * batch_;
    const int64_t accepted = view.num_pooled + view.num_selected + view.num_trained;
    return allowed - accepted - view.num_running;
  }

 private:
  const int64_t bound_;
  const int64_t batch_;
};

// version_window: DORA's rule. At most `window` versions older than the trainer's are alive.
//
// As a count: while the oldest group not yet trained on was dispatched at version d, no more
// groups are kept than steps 0 ... d + window consume. With accept_all no token of a trained
// group is older than `window` steps; docs/policies.md proves it.
class VersionWindowSupply final : public SupplyPolicy {
 public:
  VersionWindowSupply(int64_t window, int64_t batch) : window_(window), batch_(batch) {}

  int64_t NumToStart(const SupplyView& view) const override {
    const PolicyVersion next = view.oldest_promised.value_or(view.published);
    const PolicyVersion oldest = std::min(view.oldest_dispatch.value_or(next), next);
    const int64_t kept = view.num_started - view.num_rejected - view.num_lost;
    return (oldest.step() + window_ + 1) * batch_ - kept;
  }

 private:
  const int64_t window_;
  const int64_t batch_;
};

// over_sampling: APRIL's rule. More groups are started than a batch needs, and none while a
// batch is trained on. Unfinished groups continue under the next weights before new ones
// start. Colocated engines are paused meanwhile (cluster.layout).
class OverSamplingSupply final : public SupplyPolicy {
 public:
  // REQUIRES: over_sampled >= the batch
  explicit OverSamplingSupply(int64_t over_sampled) : over_sampled_(over_sampled) {}

  int64_t NumToStart(const SupplyView& view) const override {
    if (view.training) return 0;
    return over_sampled_ - view.num_running - view.num_pooled - view.num_selected;
  }

 private:
  const int64_t over_sampled_;
};

// cancelling: prime-rl's rule. A threshold on outstanding groups, and a running group is
// stopped once it was dispatched more than `max_lag` versions ago, so that no compute goes
// into a group that admission would reject.
//
// Use it with oldest_token. A prompt that always takes longer is retried at most
// supply.max_attempts times.
class CancellingSupply final : public SupplyPolicy {
 public:
  CancellingSupply(int64_t max_lag, int64_t max_outstanding)
      : max_lag_(max_lag), max_outstanding_(max_outstanding) {}

  int64_t NumToStart(const SupplyView& view) const override {
    return max_outstanding_ - view.num_outstanding();
  }
  bool MayAbandon() const override { return true; }
  Abandon ShouldAbandon(const RunningGroup& group, const SupplyView& view) const override {
    return Lag(group.dispatched, view.trainer) > max_lag_ ? Abandon::kDrop : Abandon::kNo;
  }
  std::optional<int64_t> MaxOutstanding() const override { return max_outstanding_; }

 private:
  const int64_t max_lag_;
  const int64_t max_outstanding_;
};

}  // namespace pace

#endif  // PACE_CONTROL_SUPPLY_POLICIES_H_
