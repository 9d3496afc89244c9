#include "judge/reward_pool.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace pace {
namespace {

// How long the thread sleeps when nothing is due.
constexpr Seconds kLookUp{1};
// Responses of one message to a function that takes one at a time: fewer wake-ups. The process
// answers with those that fit into its time slice, and the others are asked again.
constexpr int64_t kMessageSize = 16;
// Seconds between attempts to reach a server, doubling, as http_worker.py has them; and seconds
// for what is not waiting for it.
constexpr double kFirstPause = 0.5;
constexpr double kMaxPause = 30;
constexpr double kServerGrace = 10;

// A call of a server has all its attempts, and the pauses between them.
Seconds TimeoutOf(const OwnReward& reward, const RewardOptions& options) {
  if (reward.url.empty()) return Seconds(options.timeout);
  double seconds = options.timeout + kServerGrace;
  double pause = kFirstPause;
  for (int64_t i = 0; i < options.num_retries; ++i) {
    seconds += options.timeout + pause;
    pause = std::min(2 * pause, kMaxPause);
  }
  return Seconds(seconds);
}

RewardLimits LimitsOf(const OwnReward& reward, const RewardOptions& options) {
  const bool batched = options.batch > 1 || !reward.url.empty();
  return {.num_workers = options.num_workers,
          .batch = batched ? options.batch : kMessageSize,
          .timeout = TimeoutOf(reward, options),
          .start_timeout = Seconds(options.start_timeout)};
}

}  // namespace

RewardPool::RewardPool(const OwnReward& reward, const RewardOptions& options, FileDescriptor wake)
    : command_{.python = options.python,
               .script = reward.url.empty() ? RewardWorkerSource() : HttpWorkerSource(),
               .file = reward.url.empty() ? reward.python.file : reward.url,
               .name = reward.url.empty() ? reward.python.name
                                          : Concat(options.timeout, " ", options.num_retries),
               .batch = options.batch,
               .memory_mib = options.memory_mib},
      wake_(std::move(wake)),
      queue_(LimitsOf(reward, options)),
      workers_(static_cast<size_t>(options.num_workers)),
      thread_([this] { Loop(); }) {}

Result<std::shared_ptr<RewardPool>> RewardPool::Open(const OwnReward& reward,
                                                     const RewardOptions& options) {
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus("eventfd");
  std::shared_ptr<RewardPool> pool(new RewardPool(reward, options, std::move(wake)));
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            Seconds(options.start_timeout) + kLookUp);
  const MutexLock lock(pool->mutex_);
  while (!pool->started_.has_value()) {
    if (!pool->first_start_.WaitUntil(pool->mutex_, deadline)) break;
  }
  if (!pool->started_.has_value()) {
    return Unavailable(pool->command_.file, ": not loaded within ", options.start_timeout,
                       " s (reward.start_timeout)");
  }
  PACE_RETURN_IF_ERROR(*pool->started_);
  return pool;
}

RewardPool::~RewardPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
}

void RewardPool::Wake() const {
  const uint64_t one = 1;
  const ssize_t written = write(wake_.get(), &one, sizeof(one));
  static_cast<void>(written);  // full: it is readable already
}

void RewardPool::Ask(RewardRequest request, Done done) {
  {
    const MutexLock lock(mutex_);
    asked_.push_back({std::move(request), std::move(done)});
  }
  Wake();
}

RewardReply RewardPool::Judge(RewardRequest request) {
  std::vector<RewardRequest> requests;
  requests.push_back(std::move(request));
  return std::move(JudgeAll(std::move(requests)).front());
}

std::vector<RewardReply> RewardPool::JudgeAll(std::vector<RewardRequest> requests) {
  struct Answers {
    Mutex mutex;
    CondVar all;
    std::vector<RewardReply> replies PACE_GUARDED_BY(mutex);
    size_t num_missing PACE_GUARDED_BY(mutex) = 0;
  };
  const auto answers = std::make_shared<Answers>();
  {
    const MutexLock lock(answers->mutex);
    answers->replies.resize(requests.size());
    answers->num_missing = requests.size();
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    Ask(std::move(requests[i]), [answers, i](const RewardReply& reply) {
      const MutexLock lock(answers->mutex);
      answers->replies[i] = reply;
      if (--answers->num_missing == 0) answers->all.NotifyAll();
    });
  }
  const MutexLock lock(answers->mutex);
  while (answers->num_missing > 0) {
    answers->all.WaitUntil(answers->mutex,
                           std::chrono::steady_clock::now() + std::chrono::seconds(1));
  }
  return answers->replies;
}

void RewardPool::Loop() {
  Execute(queue_.Warm(Now()));
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (stopping_) break;
    }
    WaitForWork();
    TakeAsked();
    for (size_t i = 0; i < workers_.size(); ++i) Hear(static_cast<int64_t>(i));
    Execute(queue_.OnTime(Now()));
  }
  workers_.clear();  // ends the processes
  std::vector<Asked> left;
  {
    const MutexLock lock(mutex_);
    left = std::exchange(asked_, {});
  }
  const RewardReply ended = RewardReply::Failed(RewardFault::kCrash, "the run has ended");
  for (const auto& [ticket, asked] : open_) asked.done(ended);
  for (const Asked& asked : left) asked.done(ended);
}

void RewardPool::WaitForWork() {
  std::vector<pollfd> polled = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  for (const Worker& worker : workers_) {
    if (!worker.process.has_value()) continue;
    const auto events =
        static_cast<int16_t>(worker.process->has_output() ? POLLIN | POLLOUT : POLLIN);
    polled.push_back({.fd = worker.process->socket(), .events = events, .revents = 0});
    if (worker.process->exit_descriptor() >= 0) {
      polled.push_back({.fd = worker.process->exit_descriptor(), .events = POLLIN, .revents = 0});
    }
  }
  const Seconds wait =
      std::clamp(queue_.NextDeadline().value_or(Now() + kLookUp) - Now(), Seconds(0), kLookUp);
  // Rounded up, so that the deadline has passed afterwards.
  poll(polled.data(), polled.size(), static_cast<int>(wait.count() * 1000) + 1);
  uint64_t count = 0;
  const ssize_t got = read(wake_.get(), &count, sizeof(count));
  static_cast<void>(got);  // nothing there: another descriptor was ready
}

void RewardPool::TakeAsked() {
  std::vector<Asked> asked;
  {
    const MutexLock lock(mutex_);
    asked = std::exchange(asked_, {});
  }
  for (Asked& one : asked) {
    const RewardTicket ticket = next_ticket_++;
    open_.emplace(ticket, std::move(one));
    Execute(queue_.Ask(ticket, Now()));
  }
}

void RewardPool::Hear(int64_t index) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  while (worker.process.has_value()) {
    if (const Result<bool> sent = worker.process->Flush(); !sent.ok()) {
      Execute(queue_.OnGone(index, sent.status().message(), Now()));
      return;
    }
    const Result<std::optional<std::string>> message = worker.process->Receive();
    if (!message.ok()) {
      if (!worker.ready) ReportStart(message.status());
      Execute(queue_.OnGone(index, message.status().message(), Now()));
      return;
    }
    if (message->has_value()) {
      OnMessage(index, **message);
      continue;
    }
    // A process may end while another that it started holds the socket open.
    pollfd exited{.fd = worker.process->exit_descriptor(), .events = POLLIN, .revents = 0};
    if (exited.fd >= 0 && poll(&exited, 1, 0) > 0) {
      Execute(queue_.OnGone(index, "its process ended", Now()));
    }
    return;
  }
}

void RewardPool::OnMessage(int64_t index, const std::string& message) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  if (!worker.ready) {
    const Status loaded = ParseReady(message).status();
    ReportStart(loaded);
    worker.ready = loaded.ok();
    Execute(loaded.ok() ? queue_.OnReady(index, Now())
                        : queue_.OnGone(index, loaded.message(), Now()));
    return;
  }
  Result<std::vector<RewardReply>> replies =
      ParseReplies(message, worker.batch, queue_.batch_of(index).size());
  if (!replies.ok() || replies->empty()) {
    Execute(queue_.OnGone(index, Concat("its process ", replies.status().message()), Now()));
    return;
  }
  Execute(queue_.OnReplies(index, std::move(replies).value(), Now()));
}

void RewardPool::Execute(const RewardActions& actions) {
  for (const RewardAction& action : actions) {
    std::visit([this](const auto& typed) { Do(typed); }, action);
  }
  // Processes that could not be started or written to.
  while (!gone_.empty()) {
    const auto [worker, why] = gone_.back();
    gone_.pop_back();
    for (const RewardAction& action : queue_.OnGone(worker, why, Now())) {
      std::visit([this](const auto& typed) { Do(typed); }, action);
    }
  }
}

void RewardPool::Do(const StartRewardWorker& action) {
  Worker& worker = workers_[static_cast<size_t>(action.worker)];
  worker.process.reset();
  worker.ready = false;
  Result<RewardProcess> process = RewardProcess::Start(command_);
  if (process.ok()) {
    worker.process.emplace(std::move(process).value());
    return;
  }
  ReportStart(process.status());
  gone_.emplace_back(action.worker, process.status().message());
}

void RewardPool::Do(const SendRewards& action) {
  Worker& worker = workers_[static_cast<size_t>(action.worker)];
  std::vector<const RewardRequest*> requests;
  for (const RewardTicket ticket : action.tickets) requests.push_back(&open_.at(ticket).request);
  worker.batch = next_batch_++;
  const Status sent = worker.process->Send(BatchJson(worker.batch, requests));
  if (!sent.ok()) gone_.emplace_back(action.worker, sent.message());
}

void RewardPool::Do(const EndRewardWorker& action) {
  Worker& worker = workers_[static_cast<size_t>(action.worker)];
  worker.process.reset();
  worker.ready = false;
}

void RewardPool::Do(const DeliverReward& action) {
  if (action.reply.later) {
    Execute(queue_.Ask(action.ticket, Now()));
    return;
  }
  auto asked = open_.extract(action.ticket);
  if (!asked.empty()) asked.mapped().done(action.reply);
}

void RewardPool::ReportStart(const Status& status) {
  {
    const MutexLock lock(mutex_);
    if (started_.has_value()) return;
    started_ = status;
  }
  first_start_.NotifyAll();
}

}  // namespace pace
