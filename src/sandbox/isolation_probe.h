// Which pieces of isolation this machine offers to this process.
//
// Each piece is tried in a child process: containers refuse by seccomp, missing capabilities or
// kernel settings, and only an attempt shows it.
//
//   PACE_RETURN_IF_ERROR(RequireIsolation(ProbeIsolation()));
#ifndef PACE_SANDBOX_ISOLATION_PROBE_H_
#define PACE_SANDBOX_ISOLATION_PROBE_H_

#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

struct IsolationPiece {
  std::string name;  // "user namespaces"
  int error = 0;     // errno of the attempt; 0: available
};

// All pieces that isolation needs, in the order of their use.
std::vector<IsolationPiece> ProbeIsolation();

// Ok if all pieces are available; otherwise an error that names the first missing one, the reason
// and what to do.
Status RequireIsolation(const std::vector<IsolationPiece>& pieces);

}  // namespace pace

#endif  // PACE_SANDBOX_ISOLATION_PROBE_H_
