// RewardPool: rewards from a function in Python or from a server, by a bounded number of processes:
// they call the function, or send the responses to the server and wait for it.
//
//   PACE_ASSIGN_OR_RETURN(const auto pool, RewardPool::Open(reward, options));
//   pool->Ask(request, [](const RewardReply& reply) { ... });   // on the pool's thread
//   const RewardReply reply = pool->Judge(request);             // the same, waiting
//
// Processes are started when the pool opens and again when one ends. Every request is answered,
// within the timeouts of the options; a fault is a reply too. The destructor ends the processes
// and everything they started; requests that are not answered yet get a reply of kind crash.
//
// Thread-safety: Ask and Judge from any thread; callbacks must not wait for the pool.
#ifndef PACE_JUDGE_REWARD_POOL_H_
#define PACE_JUDGE_REWARD_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/reward_options.h"
#include "core/clock.h"
#include "core/file_descriptor.h"
#include "core/mutex.h"
#include "core/status.h"
#include "judge/reward_process.h"
#include "judge/reward_queue.h"
#include "judge/reward_request.h"

namespace pace {

class RewardPool {
 public:
  using Done = std::function<void(const RewardReply&)>;

  // Starts the processes and waits until the first has loaded the function. An error says why it
  // cannot be loaded.
  static Result<std::shared_ptr<RewardPool>> Open(const OwnReward& reward,
                                                  const RewardOptions& options);
  ~RewardPool();
  RewardPool(const RewardPool&) = delete;
  RewardPool& operator=(const RewardPool&) = delete;

  void Ask(RewardRequest request, Done done) PACE_EXCLUDES(mutex_);
  RewardReply Judge(RewardRequest request) PACE_EXCLUDES(mutex_);
  // Several at once, in order.
  std::vector<RewardReply> JudgeAll(std::vector<RewardRequest> requests) PACE_EXCLUDES(mutex_);

 private:
  struct Asked {
    RewardRequest request;
    Done done;
  };
  struct Worker {
    std::optional<RewardProcess> process = {};
    bool ready = false;
    int64_t batch = 0;
  };

  RewardPool(const OwnReward& reward, const RewardOptions& options, FileDescriptor wake);

  void Loop() PACE_EXCLUDES(mutex_);
  void TakeAsked() PACE_EXCLUDES(mutex_);
  void WaitForWork();
  void Hear(int64_t worker);
  void OnMessage(int64_t worker, const std::string& message);
  void Execute(const RewardActions& actions);
  void Do(const StartRewardWorker& action);
  void Do(const SendRewards& action);
  void Do(const EndRewardWorker& action);
  void Do(const DeliverReward& action);
  void ReportStart(const Status& status) PACE_EXCLUDES(mutex_);
  void Wake() const;
  Seconds Now() const { return clock_.Now(); }

  const RewardCommand command_;
  const WallClock clock_;
  const FileDescriptor wake_;  // an eventfd

  // Of the pool's thread alone.
  RewardQueue queue_;
  std::vector<Worker> workers_;
  std::map<RewardTicket, Asked> open_;
  RewardTicket next_ticket_ = 0;
  int64_t next_batch_ = 0;
  std::vector<std::pair<int64_t, std::string>> gone_;  // found while acting: worker and why

  Mutex mutex_;
  CondVar first_start_;
  std::vector<Asked> asked_ PACE_GUARDED_BY(mutex_);
  std::optional<Status> started_ PACE_GUARDED_BY(mutex_);
  bool stopping_ PACE_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // the last member: it uses the others
};

}  // namespace pace

#endif  // PACE_JUDGE_REWARD_POOL_H_
