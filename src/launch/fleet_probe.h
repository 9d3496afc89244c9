// Finds out about a fleet: calls its servers, writes to its folder, looks for NCCL.
//
//   FleetFacts facts;
//   facts.engines.push_back(ProbeEngine({.url = "http://node1:8000"}, dialect, Seconds(5)));
//   for (const FleetLine& line : CheckFleet(facts)) { ... }
//
// Thread-safety: may be called from any thread.
#ifndef PACE_LAUNCH_FLEET_PROBE_H_
#define PACE_LAUNCH_FLEET_PROBE_H_

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "engines/dialect.h"
#include "engines/http_calls.h"
#include "launch/fleet_check.h"

namespace pace {

// Makes the calls of Dialect::Join, one after another, each with this deadline.
EngineFacts ProbeEngine(const ServerAddress& server, const Dialect& dialect, Seconds deadline);

// Writes a file to the folder, which is made if it is absent, and removes it again.
FolderFacts ProbeFolder(const std::string& path, int64_t needed_bytes);

// The version of libnccl.so.2, or of the library that VLLM_NCCL_SO_PATH names.
Result<std::string> FindNccl();

}  // namespace pace

#endif  // PACE_LAUNCH_FLEET_PROBE_H_
