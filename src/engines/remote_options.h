// What RemoteCore is told once, and what it wants done.
//
// Thread-safety: plain data.
#ifndef PACE_ENGINES_REMOTE_OPTIONS_H_
#define PACE_ENGINES_REMOTE_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/token_id.h"
#include "core/version.h"
#include "engines/dialect.h"
#include "http/client.h"
#include "model/weight_set.h"
#include "rollout/engine_core.h"
#include "rollout/worker.h"

namespace pace {

// How weights reach a server.
enum class WeightPath {
  kFolder,   // it reads them from a disk that it shares with us
  kChannel,  // they are sent beside HTTP (weight_channel.h)
};

struct RemoteOptions {
  std::string run = "run";  // of labels and request ids: letters, digits, '-'
  WeightPath weights = WeightPath::kFolder;
  // Whether a pause that interrupts responses waits for AllowPause.
  bool pauses_in_turn = false;
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

// The weights of a version, in the form that WeightPath says.
struct ServerWeights {
  PolicyVersion version{};
  std::string folder = {};
  std::shared_ptr<const void> hold = {};  // keeps the folder
  WeightSet weights = {};
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
// Open a channel to the server's workers: answer with Invited, and with Transferred when all have
// joined. DropCall of `call` ends it early.
struct OpenChannel {
  int64_t call = 0;
  int64_t num_workers = 1;
};
// Send these tensors of it over the channel; answer with Transferred.
struct SendWeights {
  int64_t call = 0;
  WeightSet weights = {};
  std::vector<WeightChunk> chunks = {};
};
// Answer with AllowPause when the server may pause, at once or later; EndPause follows.
struct AskPause {};
struct EndPause {};
using RemoteAction =
    std::variant<SendCall, DropCall, OpenChannel, SendWeights, AskPause, EndPause, RolloutEvent>;

}  // namespace pace

#endif  // PACE_ENGINES_REMOTE_OPTIONS_H_
