// Which pieces of isolation this machine offers to this process.
//
// Each piece is tried in a child of its own, not looked up: containers refuse by
// seccomp, by missing capabilities or by settings of the kernel, and only the
// attempt tells.
#ifndef PACE_SANDBOX_ISOLATION_PROBE_H_
#define PACE_SANDBOX_ISOLATION_PROBE_H_

#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

struct IsolationPiece {
  std::string name;  // "user namespaces"
  int error = 0;     // errno of the attempt; 0: it is there
};

// All that isolation needs, in the order in which they are needed.
std::vector<IsolationPiece> ProbeIsolation();

// Ok where all are there; otherwise one line that names the first that is not,
// why, and what to do.
Status RequireIsolation(const std::vector<IsolationPiece>& pieces);

}  // namespace pace

#endif  // PACE_SANDBOX_ISOLATION_PROBE_H_
