// A SupplyPolicy decides how many groups may be started, and whether running groups stop.
//
// A group holds one credit from its dispatch until the weights of its step have reached every
// live worker, or until it is rejected or lost. The coordinator counts credits and asks the
// policy after every event.
//
// Thread-safety: none; one owner, the coordinator. No clock, no I/O. Stable: docs/library.md.
#ifndef PACE_CONTROL_SUPPLY_POLICY_H_
#define PACE_CONTROL_SUPPLY_POLICY_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "config/run_options.h"
#include "core/ids.h"
#include "core/status.h"
#include "core/version.h"

namespace pace {

// All a supply policy may know.
struct SupplyView {
  // Groups by state, now.
  int64_t num_running = 0;
  int64_t num_pooled = 0;
  int64_t num_selected = 0;       // drawn and admitted for the current step
  int64_t num_awaiting_sync = 0;  // trained, credit not yet returned
  // Groups since the run began.
  int64_t num_started = 0;
  int64_t num_trained = 0;
  int64_t num_rejected = 0;
  int64_t num_lost = 0;

  PolicyVersion trainer;    // the version the trainer is at
  PolicyVersion published;  // the newest version handed to workers
  // The oldest version that a group started now could sample from; none while
  // no worker can take one.
  std::optional<PolicyVersion> oldest_promised;
  // The version at dispatch of the oldest group that is running, pooled or
  // selected.
  std::optional<PolicyVersion> oldest_dispatch;
  bool gathering = false;  // a step has begun and its batch is not full
  bool training = false;   // a batch is being trained on
  // Since the trainer was last ready, a worker had room for a group and the policy allowed none.
  bool supply_limited = false;

  int64_t num_outstanding() const {
    return num_running + num_pooled + num_selected + num_awaiting_sync;
  }
};

struct RunningGroup {
  GroupId id{};
  PolicyVersion dispatched{};  // the version its worker was promised at dispatch
  int64_t num_finished = 0;    // members that have finished
};

enum class Abandon {
  kNo,
  kDrop,        // throw the partial responses away
  kKeepPrefix,  // the prompt comes back first and resumes from them
};

// What a supply policy may learn of time, as the driver measured it; 0 where it did not.
struct SupplyReport {
  double seconds = 0;      // from the end of the step before
  double waited = 0;       // of these, waiting for groups
  int64_t num_tokens = 0;  // that the engines sampled
};

// The state of a policy between events; every policy saves into this form. Empty for policies
// without state.
struct SupplyState {
  double limit = 0;                // credits that may be out
  double owed = 0;                 // credits that waits beyond the allowance have earned
  double wait = 0;                 // share of the time that the trainer waits
  std::deque<int64_t> balances{};  // groups in the pool beyond a batch, at the last steps
  // Steps since the limit changed, and what the current block of steps adds up: groups running as
  // each group finishes, tokens, seconds.
  int64_t num_steps = 0;
  int64_t num_blocks = 0;
  int64_t num_measured = 0;  // steps of the block
  int64_t num_samples = 0;
  double sum_running = 0;
  double sum_tokens = 0;
  double sum_seconds = 0;
  // Means of the last full block; 0 = there was none under this limit.
  double running = 0;
  double throughput = 0;  // tokens per second
  // A larger limit on trial: the limit before it, 0 = none on trial; and the means then.
  double trial_from = 0;
  double trial_running = 0;
  double trial_throughput = 0;
  // What the trial before this one gained, as an exponent of growth, and the logarithm of the
  // number running in its middle; a gain of 0 = there was none.
  double gain = 0;
  double gain_middle = 0;
  // The limit beyond which growth does not pay, 0 = none known; and the throughput there, 0 = not
  // measured yet.
  double ceiling = 0;
  double ceiling_throughput = 0;
};

class SupplyPolicy {
 public:
  virtual ~SupplyPolicy() = default;

  // How many more groups may start now; free worker slots bound it further.
  [[nodiscard]] virtual int64_t NumToStart(const SupplyView& view) const = 0;

  // A group has finished.
  virtual void OnGroupFinished(const SupplyView&) {}

  // A step has finished, and the trainer is ready for the next one.
  virtual void OnTrainerReady(const SupplyView&, const SupplyReport&) {}

  // Policies that never abandon are not asked about each running group.
  [[nodiscard]] virtual bool MayAbandon() const { return false; }

  // Asked for every running group when a batch has filled and when the
  // trainer's version advanced.
  [[nodiscard]] virtual Abandon ShouldAbandon(const RunningGroup&, const SupplyView&) const {
    return Abandon::kNo;
  }

  // The most credits this policy ever lets out, if it has such a bound.
  [[nodiscard]] virtual std::optional<int64_t> MaxOutstanding() const { return std::nullopt; }

  // A restored policy behaves as the saved one would. Restore leaves the policy unchanged when
  // it returns an error.
  [[nodiscard]] virtual SupplyState Save() const { return {}; }
  virtual Status Restore(const SupplyState&) { return Status::Ok(); }
};

std::unique_ptr<SupplyPolicy> MakeSupplyPolicy(const SupplyOptions& options, int64_t batch);

}  // namespace pace

#endif  // PACE_CONTROL_SUPPLY_POLICY_H_
