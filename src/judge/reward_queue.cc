#include "judge/reward_queue.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {
namespace {

// Processes that fail to start in a row before requests fail with them.
constexpr int64_t kMaxFailedStarts = 3;

}  // namespace

RewardQueue::RewardQueue(const RewardLimits& limits)
    : limits_(limits), workers_(static_cast<size_t>(limits.num_workers)) {
  PACE_CHECK(limits.num_workers >= 1 && limits.batch >= 1, "a reward needs a process and a batch");
}

int64_t RewardQueue::num_running() const {
  int64_t count = 0;
  for (const Worker& worker : workers_) count += static_cast<int64_t>(worker.batch.size());
  return count;
}

void RewardQueue::Start(int64_t worker, Seconds now, RewardActions& out) {
  At(worker) = {.state = State::kStarting, .deadline = now + limits_.start_timeout, .batch = {}};
  out.push_back(StartRewardWorker{worker});
}

RewardActions RewardQueue::Warm(Seconds now) {
  RewardActions out;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].state == State::kAbsent) Start(static_cast<int64_t>(i), now, out);
  }
  return out;
}

RewardActions RewardQueue::Ask(RewardTicket ticket, Seconds now) {
  RewardActions out;
  waiting_.push_back({.ticket = ticket});
  Dispatch(now, out);
  return out;
}

RewardActions RewardQueue::OnReady(int64_t worker, Seconds now) {
  RewardActions out;
  if (At(worker).state != State::kStarting) return out;
  num_failed_starts_ = 0;
  At(worker).state = State::kIdle;
  Dispatch(now, out);
  return out;
}

RewardActions RewardQueue::OnReplies(int64_t worker, std::vector<RewardReply> replies,
                                     Seconds now) {
  RewardActions out;
  Worker& busy = At(worker);
  PACE_CHECK(busy.state == State::kBusy && replies.size() == busy.batch.size(),
             "replies that nothing asked for");
  for (size_t i = 0; i < replies.size(); ++i) {
    out.push_back(DeliverReward{busy.batch[i], std::move(replies[i])});
  }
  busy.batch.clear();
  busy.state = State::kIdle;
  Dispatch(now, out);
  return out;
}

RewardActions RewardQueue::OnGone(int64_t worker, const std::string& why, Seconds now) {
  RewardActions out;
  Worker& gone = At(worker);
  const State state = std::exchange(gone.state, State::kAbsent);
  if (state == State::kAbsent) return out;
  out.push_back(EndRewardWorker{worker});
  if (state == State::kStarting) OnFailedStart(why, out);
  if (state == State::kBusy) Return(gone, RewardFault::kCrash, why, out);
  Dispatch(now, out);
  return out;
}

RewardActions RewardQueue::OnTime(Seconds now) {
  RewardActions out;
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    const bool timed = worker.state == State::kBusy || worker.state == State::kStarting;
    if (!timed || worker.deadline > now) continue;
    const bool starting = worker.state == State::kStarting;
    worker.state = State::kAbsent;
    out.push_back(EndRewardWorker{static_cast<int64_t>(i)});
    if (starting) {
      OnFailedStart(Concat("did not start within ", limits_.start_timeout.count(), " s"), out);
    } else {
      Return(worker, RewardFault::kTimeout,
             Concat("did not return within ", limits_.timeout.count(), " s"), out);
    }
  }
  Dispatch(now, out);
  return out;
}

std::optional<Seconds> RewardQueue::NextDeadline() const {
  std::optional<Seconds> next;
  for (const Worker& worker : workers_) {
    if (worker.state != State::kBusy && worker.state != State::kStarting) continue;
    if (!next.has_value() || worker.deadline < *next) next = worker.deadline;
  }
  return next;
}

void RewardQueue::Return(Worker& worker, RewardFault fault, const std::string& why,
                         RewardActions& out) {
  const std::vector<RewardTicket> batch = std::exchange(worker.batch, {});
  if (batch.size() == 1) {
    out.push_back(DeliverReward{batch[0], RewardReply::Failed(fault, why)});
    return;
  }
  for (auto ticket = batch.rbegin(); ticket != batch.rend(); ++ticket) {
    waiting_.push_front({.ticket = *ticket, .alone = true});
  }
}

void RewardQueue::OnFailedStart(const std::string& why, RewardActions& out) {
  if (++num_failed_starts_ < kMaxFailedStarts) return;
  num_failed_starts_ = 0;
  for (const Waiting& waiting : waiting_) {
    out.push_back(DeliverReward{
        waiting.ticket,
        RewardReply::Failed(RewardFault::kCrash, Concat("no process can be started: ", why))});
  }
  waiting_.clear();
}

std::vector<RewardTicket> RewardQueue::TakeBatch() {
  // Every process gets its share.
  const int64_t share = (num_waiting() + limits_.num_workers - 1) / limits_.num_workers;
  std::vector<RewardTicket> batch;
  while (!waiting_.empty() && std::ssize(batch) < std::min(limits_.batch, share)) {
    const Waiting next = waiting_.front();
    if (next.alone && !batch.empty()) break;
    waiting_.pop_front();
    batch.push_back(next.ticket);
    if (next.alone) break;
  }
  return batch;
}

void RewardQueue::Dispatch(Seconds now, RewardActions& out) {
  int64_t num_starting = 0;
  for (size_t i = 0; i < workers_.size() && !waiting_.empty(); ++i) {
    Worker& worker = workers_[i];
    num_starting += worker.state == State::kStarting ? 1 : 0;
    if (worker.state != State::kIdle) continue;
    worker.batch = TakeBatch();
    worker.state = State::kBusy;
    worker.deadline = now + limits_.timeout;
    out.push_back(SendRewards{static_cast<int64_t>(i), worker.batch});
  }
  // What still waits needs a process that is not there.
  const int64_t num_batches = (num_waiting() + limits_.batch - 1) / limits_.batch;
  for (size_t i = 0; i < workers_.size() && num_starting < num_batches; ++i) {
    if (workers_[i].state != State::kAbsent) continue;
    Start(static_cast<int64_t>(i), now, out);
    ++num_starting;
  }
}

}  // namespace pace
