#include "judge/environment_pool.h"

#include <poll.h>

#include <chrono>
#include <functional>
#include <utility>

namespace pace {
namespace {

// Waits look again this often; nothing depends on it.
constexpr std::chrono::seconds kPatience{1};

bool HasInput(int descriptor) {
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  return descriptor >= 0 && poll(&polled, 1, 0) > 0;
}

}  // namespace

EnvironmentPool::EnvironmentPool(const PythonName& environment, const EnvironmentLimits& limits)
    : command_{.python = limits.python,
               .python_key = "tools.python",
               .script = EnvironmentWorkerSource(),
               .file = environment.file,
               .name = environment.name,
               .memory_mib = limits.memory_mib},
      limits_(limits),
      workers_(static_cast<size_t>(limits.num_workers)),
      thread_([this] { StartLoop(); }) {}

Result<std::unique_ptr<EnvironmentPool>> EnvironmentPool::Open(const PythonName& environment,
                                                               const EnvironmentLimits& limits) {
  std::unique_ptr<EnvironmentPool> pool(new EnvironmentPool(environment, limits));
  // All begin to load; the others are waited for when they are needed.
  for (Worker& worker : pool->workers_) {
    PACE_ASSIGN_OR_RETURN(RewardProcess process, pool->Start());
    const MutexLock lock(worker.mutex);
    worker.process.emplace(std::move(process));
  }
  Worker& first = pool->workers_.front();
  const MutexLock lock(first.mutex);
  PACE_ASSIGN_OR_RETURN(pool->tools_, pool->MakeReady(first, -1));
  return pool;
}

EnvironmentPool::~EnvironmentPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void EnvironmentPool::StartLoop() {
  while (true) {
    Wanted wanted;
    {
      const MutexLock lock(mutex_);
      while (wanted_.empty() && !stopping_) {
        changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kPatience);
      }
      if (stopping_) return;
      wanted = wanted_.front();
      wanted_.pop_front();
    }
    Result<RewardProcess> process = RewardProcess::Start(command_);
    const MutexLock lock(mutex_);
    if (process.ok()) {
      wanted.out->emplace(std::move(process).value());
    } else {
      *wanted.why = process.status();
    }
    *wanted.made = true;
    changed_.NotifyAll();
  }
}

Result<RewardProcess> EnvironmentPool::Start() {
  std::optional<RewardProcess> process;
  Status why;
  bool made = false;
  const MutexLock lock(mutex_);
  wanted_.push_back({.out = &process, .why = &why, .made = &made});
  changed_.NotifyAll();
  while (!made) changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kPatience);
  if (!process.has_value()) return why;
  return *std::move(process);
}

Result<std::string> EnvironmentPool::MakeReady(Worker& worker, int cancel) {
  if (worker.process.has_value() && HasInput(worker.process->exit_descriptor())) {
    // What it said before it ended may tell why.
    if (worker.ready) worker.process.reset();
  }
  if (!worker.process.has_value()) {
    worker.ready = false;
    PACE_ASSIGN_OR_RETURN(RewardProcess process, Start());
    worker.process.emplace(std::move(process));
  }
  if (worker.ready) return tools_;
  const Result<std::optional<std::string>> message =
      worker.process->Await(limits_.start_timeout, cancel);
  if (!message.ok()) return message.status().At(command_.file + ": not loaded");
  if (!message->has_value()) {
    return Unavailable(command_.file, ": not loaded within ", limits_.start_timeout.count(),
                       " s (tools.start_timeout)");
  }
  PACE_ASSIGN_OR_RETURN(std::string tools, ParseReady(**message));
  worker.ready = true;
  return tools;
}

EnvironmentStep EnvironmentPool::Take(const EnvironmentTurn& turn, int cancel) {
  const size_t index = std::hash<std::string>{}(turn.key) % workers_.size();
  Worker& worker = workers_[index];
  const MutexLock lock(worker.mutex);
  if (HasInput(cancel)) return EnvironmentStep::Failed(RewardFault::kCrash, "the run has ended");
  if (const Status ready = MakeReady(worker, cancel).status(); !ready.ok()) {
    worker.process.reset();
    return EnvironmentStep::Failed(RewardFault::kCrash, ready.message());
  }
  // Turns that are replayed have their time, too.
  const Seconds timeout = limits_.timeout * static_cast<double>(turn.turns.size());
  const Status sent = worker.process->Send(TurnJson(turn));
  if (sent.ok()) {
    const Result<std::optional<std::string>> message = worker.process->Await(timeout, cancel);
    if (message.ok() && message->has_value()) {
      Result<EnvironmentStep> step = ParseStep(**message);
      if (step.ok()) return std::move(step).value();
      worker.process.reset();
      return EnvironmentStep::Failed(RewardFault::kCrash, "its process " + step.status().message());
    }
    if (message.ok()) {
      worker.process.reset();
      return EnvironmentStep::Failed(RewardFault::kTimeout,
                                     Concat("did not return within ", timeout.count(), " s"));
    }
  }
  worker.process.reset();
  return EnvironmentStep::Failed(RewardFault::kCrash, "its process ended");
}

}  // namespace pace
