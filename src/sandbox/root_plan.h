// RootPlan: the file system that programs see, as a list of steps.
//
// It is decided here, by looking at the machine, and built elsewhere, by a
// process that may not even allocate. Read-only throughout: /usr, the shared
// libraries, a Python; /etc with the few files that those need; harmless
// devices. Nothing else of the machine is there.
//
// While it is built, the machine's files are under /old and the new ones grow
// under /new.
#ifndef PACE_SANDBOX_ROOT_PLAN_H_
#define PACE_SANDBOX_ROOT_PLAN_H_

#include <string>
#include <vector>

#include "sandbox/python_installation.h"

namespace pace {

enum class RootStepKind {
  kDirectory,   // make `target`
  kFile,        // make `target` with `source` as its content
  kLink,        // make `target` a symbolic link to `source`
  kBind,        // show `source` at `target`, read-only
  kBindDevice,  // show the device `source` at `target`
  kProc,        // this pid namespace's processes at `target`; else those under `source`
};

struct RootStep {
  RootStepKind kind = RootStepKind::kDirectory;
  std::string source;
  std::string target;
};

// What the plan needs to know of the machine; a test gives one of its own.
class FileSystemView {
 public:
  virtual ~FileSystemView() = default;
  virtual bool IsDirectory(const std::string& path) const = 0;
  // What a symbolic link says; empty where it is none.
  virtual std::string LinkTarget(const std::string& path) const = 0;
  // The path without any symbolic link in it.
  virtual std::string RealPath(const std::string& path) const = 0;
  // Empty where it cannot be read.
  virtual std::string Content(const std::string& path) const = 0;
};

std::vector<RootStep> PlanRoot(const PythonInstallation& python, const FileSystemView& machine);

// The machine as it is.
const FileSystemView& ThisMachine();

}  // namespace pace

#endif  // PACE_SANDBOX_ROOT_PLAN_H_
