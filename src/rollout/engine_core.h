// EngineCore generates: requests in, finished responses out, one pass at a time.
//
// No threads and no clock: every driver shares it, the virtual one too. Given
// the same requests, seeds and syncs at the same token of each response, it
// yields the same tokens and log-probabilities, to the bit where the decoder is
// deterministic, whatever the schedule. (Not with SyncMode::kKeep: which
// weights a kept position was computed under depends on the schedule.)
//
//   EngineCore engine(std::move(decoder), tokenizer, options);
//   PACE_RETURN_IF_ERROR(engine.Sync(PolicyVersion(0), weights));
//   PACE_RETURN_IF_ERROR(engine.Submit(request));
//   while (engine.busy()) { auto step = engine.Step(); ... step->finished ... }
//
// A sync happens between two passes, so at a token boundary of every response.
// A response of at least min_scored tokens that it interrupts gets its prefix
// score from the passes that rebuild its cache: the rows are there, only the
// vocabulary projection of at most max_scored of them is added. That happens either
// before the response's next token is sampled (ScoreMoment::kRebuild) or when the
// response ends or rests, from states that the rebuild kept (kEnd): a sync replaces
// a score that is not read, so a response that many syncs interrupt is then scored
// for the last one alone. The score is the same, and always of one version: a newer
// sync, or a preemption, begins it again; a response that is still too short keeps
// the one it has. The oldest responses are rebuilt first and decode meanwhile; only
// syncs that leave no time to rebuild even one would keep the engine from sampling.
// A response whose rules say so rests at a stop: it leaves its place to others, is
// interrupted by syncs like the rest, and goes on with tokens that Continue gives it
// (what a tool said), or ends with EndRest.
// Thread-safety: none.
#ifndef PACE_ROLLOUT_ENGINE_CORE_H_
#define PACE_ROLLOUT_ENGINE_CORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "core/version.h"
#include "model/decoder.h"
#include "rollout/request.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

enum class SyncMode {
  kRebuild,  // recompute the cache under the new weights, and score prefixes
  kKeep,     // go on with the old cache; nothing is scored
  kDrain,    // finish what has begun, then swap; nothing is interrupted
};

enum class ScoreMoment { kRebuild, kEnd };

struct RolloutOptions {
  SyncMode sync_mode = SyncMode::kRebuild;
  // Prefix score: off, or over the first max_scored policy tokens of responses
  // that have at least min_scored.
  bool score_prefixes = true;
  int64_t min_scored = 32;
  int64_t max_scored = 1024;
  // kEnd wants a decoder that keeps states.
  ScoreMoment score_moment = ScoreMoment::kRebuild;
  // Rows of one pass. Three quarters as many responses can run at once.
  int64_t max_pass_tokens = 512;
  // Responses in the cache at once. 0 = as memory and max_pass_tokens allow.
  int64_t max_running = 0;

  [[nodiscard]] Status Validate() const;
};

// What a pass did; a virtual clock charges for it.
struct StepReport {
  std::vector<FinishedResponse> finished;
  std::vector<MemberId> rested;           // met a stop and wait to be told
  std::vector<MemberId> sampled;          // one token each, in order
  int64_t num_decode_rows = 0;            // rows that continue a cached sequence by one
  int64_t num_prefill_rows = 0;           // all others, rebuilds included
  int64_t num_rebuilt_rows = 0;           // rows in the cache when a sync emptied it
  int64_t num_scored_rows = 0;            // rows that a prefix score read, kept ones too
  int64_t num_context_tokens = 0;         // sum of context lengths over the rows
  int64_t num_decode_context_tokens = 0;  // of these, over the decode rows
  int64_t num_preempted = 0;
  std::optional<PolicyVersion> synced;  // a drained sync took effect before this pass
};

class EngineCore {
 public:
  // The tokenizer serves stop strings; without one, requests with stop strings
  // are refused. REQUIRES: options valid
  EngineCore(std::unique_ptr<Decoder> decoder, std::optional<Tokenizer> tokenizer,
             const RolloutOptions& options);
  ~EngineCore();

  // Version and weights that the next tokens are sampled under. Versions grow.
  // At once, but in drain mode, where Step carries it out when nothing that has
  // begun is left; until then other responses wait, and a newer sync takes this
  // one's place. The first sync interrupts nothing.
  Status Sync(PolicyVersion version, std::shared_ptr<const DecoderWeights> weights);
  // In effect; none before the first sync.
  std::optional<PolicyVersion> version() const;
  const Decoder& decoder() const;

  Status Submit(GroupRequest request);
  // Ends the unfinished members of a group, or one. What they had comes back as
  // a request that resumes it; none if there was nothing.
  std::optional<GroupRequest> Cancel(GroupId group);
  std::optional<GroupRequest> Cancel(MemberId id);

  // A response that rests goes on behind these tokens, which count as its own but
  // were sampled by nobody; none = it just goes on. Refused, and still at rest: ids
  // out of the vocabulary, or so many that its max_tokens is reached.
  // REQUIRES: it rests
  Status Continue(MemberId id, std::span<const TokenId> given);
  // Ends a response that rests. REQUIRES: it rests
  FinishedResponse EndRest(MemberId id);

  // One pass, or nothing when nothing is left to do. An error (the device
  // failed, or no sync came yet) samples nothing and loses nothing: the next
  // Step computes the cache again.
  Result<StepReport> Step();
  // Step has something to do: not while all that is unfinished rests.
  bool busy() const;

  // Every unfinished response as requests that resume it, in order of arrival,
  // for a checkpoint. Submitting them to a fresh engine at the same version goes
  // on to the bit. (A response moved to an engine at a newer version was
  // interrupted: num_interrupts and awaits_score are the mover's to set.)
  std::vector<GroupRequest> Unfinished() const;
  // A response so far, for streaming, until the next call that is not const;
  // null when there is no such unfinished response.
  const PartialResponse* Peek(MemberId id) const;

  int64_t num_unfinished() const;  // responses
  int64_t num_running() const;     // of these, in the cache
  int64_t num_free_blocks() const;
  // Aborts if blocks leak or counts disagree.
  void CheckInvariants() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_ENGINE_CORE_H_
