// What is wrong with a fleet of engines, from what was found out about it (fleet_probe.h).
//
//   for (const FleetLine& line : CheckFleet(facts)) ...
//
// One line for each thing that was looked at, whether it is in order or not.
// Thread-safety: pure functions.
#ifndef PACE_LAUNCH_FLEET_CHECK_H_
#define PACE_LAUNCH_FLEET_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "core/token_id.h"
#include "engines/dialect.h"

namespace pace {

// One server, asked what a run asks when it joins.
struct EngineFacts {
  std::string url = {};
  Status status = Status::Ok();  // why it cannot be used
  ServerFacts facts = {};
  Seconds latency{0};                       // of the fastest call
  std::optional<double> clock_offset = {};  // seconds ahead of ours; none: it does not say
  bool answers_without_token = false;       // control routes, though we have a token
};

// A folder that weights are written to.
struct FolderFacts {
  std::string path = {};
  Status status = Status::Ok();  // of writing a file there and reading it
  int64_t free_bytes = 0;
  int64_t needed_bytes = 0;  // the weights of the versions that are kept
  double clock_offset = 0;   // of a new file's time, seconds ahead of ours
};

struct FleetFacts {
  std::vector<EngineFacts> engines = {};
  // Of the run; none: only servers were named.
  std::optional<NetworkShape> shape = {};
  std::optional<std::vector<TokenId>> probe = {};  // kProbeText in its tokens
  int64_t max_context = 0;                         // its longest prompt with its response
  std::optional<FolderFacts> weights = {};
  bool sends_weights = false;                // engine.transfer=nccl
  bool needs_nccl = false;                   // several trainer ranks on GPUs, or engine.transfer
  Result<std::string> nccl = std::string();  // version, or why there is none
};

struct FleetLine {
  std::string part = {};  // a URL, "weights", "nccl", "fleet"
  std::string text = {};
  bool failed = false;
};

std::vector<FleetLine> CheckFleet(const FleetFacts& facts);

}  // namespace pace

#endif  // PACE_LAUNCH_FLEET_CHECK_H_
