// RootPlan: the file system that programs see, as a list of steps.
//
// It is decided here, from the state of the machine, and built by ChildSetup, which may not
// allocate. Everything is read-only: /usr, the shared libraries, a Python, the few files of /etc
// that these need, and harmless devices. Nothing else of the machine is visible.
//
// While it is built, the machine's files are under /old and the new ones under /new.
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

// What the plan needs to know of the machine; tests provide their own.
class FileSystemView {
 public:
  virtual ~FileSystemView() = default;
  virtual bool IsDirectory(const std::string& path) const = 0;
  // The target of a symbolic link; empty if it is none.
  virtual std::string LinkTarget(const std::string& path) const = 0;
  // The path without any symbolic link in it.
  virtual std::string RealPath(const std::string& path) const = 0;
  // Empty if it cannot be read.
  virtual std::string Content(const std::string& path) const = 0;
};

std::vector<RootStep> PlanRoot(const PythonInstallation& python, const FileSystemView& machine);

// This machine.
const FileSystemView& ThisMachine();

}  // namespace pace

#endif  // PACE_SANDBOX_ROOT_PLAN_H_
