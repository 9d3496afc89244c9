// A Python installation: the folders that must be visible for it to run.
//
//   PACE_ASSIGN_OR_RETURN(const PythonInstallation python, FindPython("python3"));
//   // python.folders: /usr/local/lib/python3.11, say
//
// Thread-safety: functions of their arguments.
#ifndef PACE_SANDBOX_PYTHON_INSTALLATION_H_
#define PACE_SANDBOX_PYTHON_INSTALLATION_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pace {

struct PythonInstallation {
  std::string executable;  // absolute, as that Python names itself
  // Folders that hold it, its library and its packages; absolute, none inside
  // another, none inside /usr.
  std::vector<std::string> folders;
};

// Starts the interpreter once and asks it. `python` is a path, or a name to look up in PATH.
Result<PythonInstallation> FindPython(const std::string& python);

// Parses its output: JSON with `executable`, `folders` and `version`. `home` and the folders above
// it must stay hidden.
Result<PythonInstallation> ReadPythonInstallation(std::string_view answer, std::string_view home);

}  // namespace pace

#endif  // PACE_SANDBOX_PYTHON_INSTALLATION_H_
