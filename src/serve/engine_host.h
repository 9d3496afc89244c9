// EngineHost: a RolloutEngine with many clients, for a server.
//
// Generate submits one response and waits for it. The bits of a response depend on its request
// and the weights alone, not on the other clients (see EngineCore). Clients may leave: their
// Cancellation cancels the response.
//
// Weights have a label, which clients choose; a response reports which of its tokens were sampled
// under which label. Every load of weights and every change of the label is a version of the
// engine, so both take effect at a token boundary of every response.
//
// Pause holds new requests until Resume, and the responses that run are aborted, finished or kept
// (PauseMode). Kept responses continue after Resume, with their cache or, where it was cleared,
// re-prefilled under the weights of that time: so a client chooses how an update meets them.
//
//   PACE_ASSIGN_OR_RETURN(auto host, EngineHost::Start(std::move(core), weights, {}));
//   Result<Generation> generation = host->Generate("id", request, {}, cancellation);
//
// Thread-safety: every method.
#ifndef PACE_SERVE_ENGINE_HOST_H_
#define PACE_SERVE_ENGINE_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"
#include "core/status.h"
#include "model/weight_set.h"
#include "rollout/engine.h"
#include "serve/api_response.h"

namespace pace {

struct EngineHostOptions {
  // Requests in progress, waiting ones included; more are refused.
  int64_t max_requests = 1024;
};

// What happens to the responses that run when generation pauses.
enum class PauseMode {
  kAbort,  // they end with the tokens they have
  kWait,   // they finish first
  kKeep,   // they continue after Resume
};

struct EngineHostStats {
  RolloutStats engine{};
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_blocks = 0;
  int64_t num_free_blocks = 0;
  int64_t num_prompt_tokens = 0;  // of all requests so far
  // Of all requests so far, by how they ended.
  int64_t num_stopped = 0;
  int64_t num_at_length = 0;
  int64_t num_aborted = 0;
  int64_t num_weight_loads = 0;
};

class EngineHost {
 public:
  // New tokens of a streamed response, on the thread that called Generate. False cancels it.
  using TokenSink = std::function<bool(std::span<const TokenRecord>)>;

  // `core` has SyncMode::kKeep and no weights yet; these get the label "default".
  static Result<std::unique_ptr<EngineHost>> Start(std::unique_ptr<EngineCore> core,
                                                   const WeightSet& weights,
                                                   const EngineHostOptions& options);
  // No call may be in progress.
  ~EngineHost();

  // One response to the request, whose group the host chooses. `id` names it for Abort; several
  // may have the same. With a sink, tokens are handed over as they come; the result repeats them.
  // Errors: an invalid request; too many requests (kUnavailable); the client left (kUnavailable);
  // the device failed (kDataLoss).
  Result<Generation> Generate(std::string_view id, GroupRequest request, const TokenSink& sink,
                              const Cancellation& cancellation);

  // Ends requests: Generate returns the tokens so far, without a reason. Returns how many. The
  // ones of these ids, or all.
  int64_t Abort(std::span<const std::string> ids);
  int64_t AbortAll();

  // Returns when generation has paused; kWait gives up at a Resume or when the caller leaves.
  // `clear_cache`: kept responses are re-prefilled after Resume.
  void Pause(PauseMode mode, bool clear_cache, const Cancellation& cancellation);
  void Resume();
  bool paused() const;
  // Responses in progress are re-prefilled before their next token.
  void ClearCache();

  // Loads safetensors of the model's shape from a folder and installs them; the label stays.
  // After an error the old weights stay.
  Status LoadWeights(const std::string& folder);
  // For tokens from here on.
  Status SetLabel(std::string label);
  std::string label() const;

  // Why the engine no longer generates; Ok while it does.
  Status health() const;
  EngineHostStats stats() const;
  const ModelConfig& config() const;
  int64_t num_blocks() const;

 private:
  struct State;
  explicit EngineHost(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_SERVE_ENGINE_HOST_H_
