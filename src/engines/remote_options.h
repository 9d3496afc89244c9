// What RemoteCore is told once, and what it wants done.
//
// Thread-safety: plain data.
#ifndef PACE_ENGINES_REMOTE_OPTIONS_H_
#define PACE_ENGINES_REMOTE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/token_id.h"
#include "engines/dialect.h"
#include "http/client.h"
#include "rollout/engine_core.h"
#include "rollout/worker.h"

namespace pace {

struct RemoteOptions {
  std::string run = "run";  // of labels and request ids: letters, digits, '-'
  // sync_mode, score_prefixes, min_scored and max_scored count; the rest is the server's.
  RolloutOptions rollout = {};
  int64_t max_requests = 256;       // in the server at a time
  int64_t vocabulary = 0;           // token ids are less
  NetworkShape shape = {};          // of the policy
  int64_t max_context = 0;          // tokens of the longest prompt with its response
  std::vector<TokenId> probe = {};  // kProbeText in our tokens; empty = do not compare
  Seconds generate_deadline{600};
  Seconds load_deadline{120};
  Seconds control_deadline{10};
};

// Make this call; answer with Answered or Failed.
struct SendCall {
  int64_t call = 0;
  HttpCall http = {};
  Seconds deadline{0};
};
// The answer to this call is of no interest any more; Answered and Failed may still come.
struct DropCall {
  int64_t call = 0;
};
using RemoteAction = std::variant<SendCall, DropCall, RolloutEvent>;

}  // namespace pace

#endif  // PACE_ENGINES_REMOTE_OPTIONS_H_
