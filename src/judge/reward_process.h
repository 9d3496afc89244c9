// RewardProcess: one Python process that computes rewards, holds environments or is an admission
// policy, and the socket to it.
//
//   PACE_ASSIGN_OR_RETURN(RewardProcess process, RewardProcess::Start(command));
//   Status sent = process.Send(BatchJson(1, requests));
//
// The process leads a PID namespace of its own where the system allows one (as root, or with
// unprivileged user namespaces): when it ends, the kernel ends everything it has started, and it
// cannot signal processes outside. Elsewhere it leads a session, and what it started is ended with
// the session. It sees the caller's files, network and environment: rewards are trusted code.
//
// It is ended with the thread that started it, and by the destructor, which waits for its end.
//
// Thread-safety: none.
#ifndef PACE_JUDGE_REWARD_PROCESS_H_
#define PACE_JUDGE_REWARD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/file_descriptor.h"
#include "core/status.h"

namespace pace {

struct RewardCommand {
  std::string python = "python3";
  std::string_view python_key = "reward.python";  // the setting that names the interpreter
  std::string_view script = {};                   // that the process runs
  std::string file = {};
  std::string name = {};  // in the file
  int64_t batch = 1;
  int64_t memory_mib = 0;  // of address space; 0 = no bound
};

class RewardProcess {
 public:
  static Result<RewardProcess> Start(const RewardCommand& command);
  RewardProcess(RewardProcess&& other) noexcept;
  RewardProcess& operator=(RewardProcess&&) = delete;
  ~RewardProcess();

  // One message. Returns at once: what the socket does not take yet goes out with Flush.
  Status Send(std::string_view message);
  // Sends what is left; true when all of it is out.
  Result<bool> Flush();
  // Reads what has arrived. One message, or none as yet. An error: the process has closed the
  // socket, or what it says is no message.
  Result<std::optional<std::string>> Receive();
  // Sends what is left and waits for one message; none within the time. An error as that of
  // Receive, or where `cancel`, a descriptor, becomes readable (-1: never).
  Result<std::optional<std::string>> Await(Seconds timeout, int cancel = -1);

  bool has_output() const { return !unsent_.empty(); }
  int socket() const { return socket_.get(); }
  // Becomes readable when the process ends; -1 where the kernel has no such descriptors.
  int exit_descriptor() const { return exited_.get(); }
  pid_t pid() const { return pid_; }

 private:
  RewardProcess(pid_t pid, FileDescriptor socket, FileDescriptor exited);

  pid_t pid_ = -1;
  FileDescriptor socket_, exited_;
  std::string unsent_, received_;
};

// The scripts of processes that compute rewards, that ask a server for them, that hold
// environments, and that are an admission policy.
std::string_view RewardWorkerSource();
std::string_view HttpWorkerSource();
std::string_view EnvironmentWorkerSource();
std::string_view PolicyWorkerSource();

}  // namespace pace

#endif  // PACE_JUDGE_REWARD_PROCESS_H_
