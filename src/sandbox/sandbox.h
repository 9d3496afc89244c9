// Sandbox: runs untrusted Python programs, isolated and concurrently.
//
// Each program gets fresh user, pid, mount, network, ipc and uts namespaces, a read-only system, a
// private empty /tmp and bounds on time, memory, processes, files and output. It has no network
// and cannot see the caller's files, processes or environment. Its whole process tree is gone
// when Run returns.
//
//   Result<std::unique_ptr<Sandbox>> sandbox = Sandbox::Start(options);
//   Result<ProgramResult> result = (*sandbox)->Run({.code = "print(1)"}, {});
//
// If isolation is unavailable, Start fails and names the missing piece.
//
// Thread-safety: Run may be called from any thread. The object outlives all runs.
#ifndef PACE_SANDBOX_SANDBOX_H_
#define PACE_SANDBOX_SANDBOX_H_

#include <memory>
#include <string>
#include <vector>

#include "config/tools_options.h"
#include "core/mutex.h"
#include "core/status.h"
#include "sandbox/control_groups.h"
#include "sandbox/program.h"
#include "sandbox/program_slots.h"
#include "sandbox/python_installation.h"
#include "sandbox/sandbox_options.h"
#include "sandbox/zygote.h"

namespace pace {

class Sandbox final : public ProgramRunner {
 public:
  static Result<std::unique_ptr<Sandbox>> Start(const SandboxOptions& options);

  Result<ProgramResult> Run(const ProgramRequest& request,
                            const Cancellation& cancellation) override;

  // One line for the log: which bounds hold, and which do not without control groups.
  std::string Description() const override;
  // Null if there are none.
  const ControlGroups* control_groups() const { return groups_.get(); }
  // Modules that warm interpreters have imported.
  const std::vector<std::string>& warm_modules() const { return warm_modules_; }

 private:
  Sandbox(const SandboxOptions& options, PythonInstallation python, ProgramSlots slots)
      : options_(options), python_(std::move(python)), free_slots_(std::move(slots)) {}

  // The slot of one program; released by the destructor.
  class Slot;

  Result<std::shared_ptr<Zygote>> ZygoteFor(const std::string& code) PACE_EXCLUDES(mutex_);
  Result<ProgramResult> RunOnce(const ProgramRequest& request, int64_t slot,
                                const Cancellation& cancellation);

  const SandboxOptions options_;
  const PythonInstallation python_;
  std::unique_ptr<ControlGroups> groups_;
  const ProgramSlots free_slots_;
  std::vector<std::string> warm_modules_;

  Mutex mutex_;
  std::vector<int64_t> slots_ PACE_GUARDED_BY(mutex_);
  // Without modules, and with them; null until needed.
  std::shared_ptr<Zygote> plain_ PACE_GUARDED_BY(mutex_);
  std::shared_ptr<Zygote> warm_ PACE_GUARDED_BY(mutex_);
};

// Whether the code names one of the modules.
bool NamesModule(const std::string& code, const std::vector<std::string>& modules);

// The program runner of the settings: a sandbox on this machine, or a remote server. Returns
// when it is ready: isolation was tested, or the server has answered.
Result<std::unique_ptr<ProgramRunner>> StartToolRunner(const ToolsOptions& options);

}  // namespace pace

#endif  // PACE_SANDBOX_SANDBOX_H_
