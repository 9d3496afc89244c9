// Zygote: one warm interpreter, isolated, that forks once per program.
//
// It imports its modules when it starts and never runs a program itself: each program gets its
// own process in fresh namespaces (zygote.py). When the object is destroyed, or this process
// dies, the interpreter and everything that it forked die too.
//
// Thread-safety: Launch may be called from any thread.
#ifndef PACE_SANDBOX_ZYGOTE_H_
#define PACE_SANDBOX_ZYGOTE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"
#include "core/status.h"
#include "sandbox/isolated_process.h"
#include "sandbox/python_installation.h"
#include "sandbox/sandbox_options.h"

namespace pace {

// The descriptors that a program starts with; all are copied.
struct ProgramDescriptors {
  int64_t slot = 0;
  int control = -1;  // reports how the program went
  int request = -1;
  int input = -1;
  int out = -1;
  int error = -1;
  // Of the slot's control groups, if any.
  int memory_events = -1;
  std::vector<int> memberships{};
};

class Zygote {
 public:
  // Returns when it has imported `modules`; missing ones are left out. processor_group: the slots'
  // control groups bound the processor share of programs; otherwise their first processes do.
  static Result<std::unique_ptr<Zygote>> Start(const SandboxOptions& options,
                                               const PythonInstallation& python,
                                               const std::vector<std::string>& modules,
                                               bool processor_group);

  // False once the interpreter has died: start another.
  bool alive() const;

  // An error means that the interpreter has died.
  Status Launch(const ProgramDescriptors& program);

  const std::vector<std::string>& modules() const { return modules_; }
  pid_t pid() const { return process_.pid(); }

 private:
  Zygote(FileDescriptor command, IsolatedProcess process)
      : process_(std::move(process)), command_(std::move(command)) {}

  Status WaitUntilReady();

  IsolatedProcess process_;
  FileDescriptor command_;
  std::vector<std::string> modules_;
};

// zygote.py and what it needs, embedded in the binary.
std::string_view ZygoteSource();

}  // namespace pace

#endif  // PACE_SANDBOX_ZYGOTE_H_
