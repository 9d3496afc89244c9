// EnvironmentPool: environments of responses, held by a bounded number of Python processes.
//
//   PACE_ASSIGN_OR_RETURN(const auto pool, EnvironmentPool::Open(name, limits));
//   const EnvironmentStep step = pool->Take(turn);
//
// A response keeps to one process, chosen by its key. A process takes one turn at a time; one that
// is late or ends is replaced, and the environments it held are made again from the turns that
// come next. Every call returns within the limits; a fault is a step, too.
//
// Thread-safety: Take from any thread.
#ifndef PACE_JUDGE_ENVIRONMENT_POOL_H_
#define PACE_JUDGE_ENVIRONMENT_POOL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "config/reward_options.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "judge/environment_turn.h"
#include "judge/reward_process.h"

namespace pace {

struct EnvironmentLimits {
  std::string python = "python3";
  int64_t num_workers = 2;
  int64_t memory_mib = 0;  // of address space of a process; 0 = no bound
  Seconds timeout{30};     // of one turn
  Seconds start_timeout{60};
};

class EnvironmentPool {
 public:
  // Starts the processes and waits until the first has loaded the class. An error says why it
  // cannot be loaded.
  static Result<std::unique_ptr<EnvironmentPool>> Open(const PythonName& environment,
                                                       const EnvironmentLimits& limits);
  ~EnvironmentPool();
  EnvironmentPool(const EnvironmentPool&) = delete;
  EnvironmentPool& operator=(const EnvironmentPool&) = delete;

  // Waits for the environment, or until `cancel`, a descriptor, becomes readable (-1: never).
  EnvironmentStep Take(const EnvironmentTurn& turn, int cancel = -1);

  // The schemas of the tools that prompts show: a JSON list.
  const std::string& tools() const { return tools_; }

 private:
  struct Worker {
    Mutex mutex;
    std::optional<RewardProcess> process PACE_GUARDED_BY(mutex);
    bool ready PACE_GUARDED_BY(mutex) = false;
  };
  struct Wanted {
    std::optional<RewardProcess>* out = nullptr;
    Status* why = nullptr;
    bool* made = nullptr;
  };

  EnvironmentPool(const PythonName& environment, const EnvironmentLimits& limits);

  // Processes end with the thread that started them, so one thread of the pool starts them all.
  void StartLoop() PACE_EXCLUDES(mutex_);
  Result<RewardProcess> Start() PACE_EXCLUDES(mutex_);
  // A process that has loaded the class; its schemas.
  Result<std::string> MakeReady(Worker& worker, int cancel) PACE_REQUIRES(worker.mutex);

  const RewardCommand command_;
  const EnvironmentLimits limits_;
  std::string tools_;
  std::deque<Worker> workers_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Wanted> wanted_ PACE_GUARDED_BY(mutex_);
  bool stopping_ PACE_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // the last member: it uses the others
};

}  // namespace pace

#endif  // PACE_JUDGE_ENVIRONMENT_POOL_H_
