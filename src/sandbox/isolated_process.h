// IsolatedProcess: a program in its own namespaces and file system.
//
// It is the first process of new pid, mount, network, ipc, uts and cgroup namespaces, and of a
// user namespace if the caller is not root. It sees the files of its RootPlan alone, has no
// capabilities and only the environment it is given. Started by root, it runs as user nobody.
// When it dies, everything that it started dies with it.
//
// Without `isolated` it is a plain child with the same descriptors: for the explicit unsafe mode
// alone.
//
// Thread-safety: Start may be called from any thread; an object is used by one.
#ifndef PACE_SANDBOX_ISOLATED_PROCESS_H_
#define PACE_SANDBOX_ISOLATED_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"
#include "core/status.h"
#include "sandbox/root_plan.h"

namespace pace {

struct IsolatedProcessOptions {
  bool isolated = true;
  std::vector<RootStep> root{};
  std::vector<std::string> arguments{};    // the first is the absolute path to run
  std::vector<std::string> environment{};  // NAME=value, and nothing else
  // Become its descriptors 3, 4, ...; 0 to 2 are /dev/null, all others closed.
  // At most 8.
  std::vector<int> descriptors{};
};

class IsolatedProcess {
 public:
  // An error names the step that failed: "mount of /usr: Operation not permitted".
  static Result<IsolatedProcess> Start(const IsolatedProcessOptions& options);

  IsolatedProcess(IsolatedProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  IsolatedProcess& operator=(IsolatedProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  // Kills it and waits until it is gone.
  ~IsolatedProcess();

  pid_t pid() const { return pid_; }

 private:
  explicit IsolatedProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
};

// The namespaces of a process that root, or another user, starts.
unsigned long IsolationFlags(bool as_root);

}  // namespace pace

#endif  // PACE_SANDBOX_ISOLATED_PROCESS_H_
