// RewardQueue: which process computes which rewards, as a pure state machine.
//
// Requests wait in order. Up to num_workers processes take batches of them; a batch that is late
// or whose process ended is divided, so that the one request at fault fails alone and the others
// are computed again. Every request ends in exactly one Deliver.
//
//   for (const RewardAction& action : queue.Ask(ticket, now)) Execute(action);
//   for (const RewardAction& action : queue.OnReady(worker, now)) Execute(action);
//
// The owner carries out the actions: it starts and ends processes, sends batches and reports what
// happened. After EndWorker it reports nothing more of that process.
//
// Thread-safety: none. No clock, no processes.
#ifndef PACE_JUDGE_REWARD_QUEUE_H_
#define PACE_JUDGE_REWARD_QUEUE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "judge/reward_request.h"

namespace pace {

using RewardTicket = int64_t;  // names a request; the caller's choice

struct RewardLimits {
  int64_t num_workers = 2;
  int64_t batch = 1;  // requests of one call
  Seconds timeout{10};
  Seconds start_timeout{60};
};

struct StartRewardWorker {
  int64_t worker = 0;
};
struct SendRewards {
  int64_t worker = 0;
  std::vector<RewardTicket> tickets = {};
};
struct EndRewardWorker {
  int64_t worker = 0;
};
struct DeliverReward {
  RewardTicket ticket = 0;
  RewardReply reply = {};
};
using RewardAction = std::variant<StartRewardWorker, SendRewards, EndRewardWorker, DeliverReward>;
using RewardActions = std::vector<RewardAction>;

class RewardQueue {
 public:
  explicit RewardQueue(const RewardLimits& limits);

  // Starts every process, so that the first requests need not wait.
  RewardActions Warm(Seconds now);

  RewardActions Ask(RewardTicket ticket, Seconds now);
  // The process has imported the function.
  RewardActions OnReady(int64_t worker, Seconds now);
  // It answered its batch. REQUIRES: as many replies as the batch has requests
  RewardActions OnReplies(int64_t worker, std::vector<RewardReply> replies, Seconds now);
  // It ended, or said something that is no answer; `why` is one line.
  RewardActions OnGone(int64_t worker, const std::string& why, Seconds now);
  // Deadlines that have passed by now.
  RewardActions OnTime(Seconds now);

  // When OnTime must be called at the latest.
  std::optional<Seconds> NextDeadline() const;

  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t num_running() const;
  // The requests of a process, in the order in which it got them.
  const std::vector<RewardTicket>& batch_of(int64_t worker) const { return At(worker).batch; }

 private:
  enum class State { kAbsent, kStarting, kIdle, kBusy };
  struct Worker {
    State state = State::kAbsent;
    Seconds deadline{0};
    std::vector<RewardTicket> batch = {};
  };
  struct Waiting {
    RewardTicket ticket = 0;
    bool alone = false;  // it was part of a batch that failed
  };

  Worker& At(int64_t worker) { return workers_[static_cast<size_t>(worker)]; }
  const Worker& At(int64_t worker) const { return workers_[static_cast<size_t>(worker)]; }
  void Start(int64_t worker, Seconds now, RewardActions& out);
  void Dispatch(Seconds now, RewardActions& out);
  std::vector<RewardTicket> TakeBatch();
  // The batch of a process that failed: one request fails, several are tried alone.
  void Return(Worker& worker, RewardFault fault, const std::string& why, RewardActions& out);
  void OnFailedStart(const std::string& why, RewardActions& out);

  const RewardLimits limits_;
  std::vector<Worker> workers_;
  std::deque<Waiting> waiting_;
  int64_t num_failed_starts_ = 0;  // in a row
};

}  // namespace pace

#endif  // PACE_JUDGE_REWARD_QUEUE_H_
