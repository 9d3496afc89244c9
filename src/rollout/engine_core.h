// EngineCore generates responses: requests in, finished responses out, one pass at a time.
//
// It has no threads and no clock, so real and virtual drivers share it. The same requests, seeds
// and syncs at the same token of each response give the same tokens and log-probabilities, to
// the bit if the decoder is deterministic, whatever the schedule. (Not with SyncMode::kKeep: the
// weights that a kept position was computed under depend on the schedule.)
//
//   EngineCore engine(std::move(decoder), tokenizer, options);
//   PACE_RETURN_IF_ERROR(engine.Sync(PolicyVersion(0), weights));
//   PACE_RETURN_IF_ERROR(engine.Submit(request));
//   while (engine.busy()) Use(engine.Step()->finished);
//
// A sync happens between two passes, so at a token boundary of every response. An interrupted
// response of at least min_scored tokens gets its prefix score from the passes that re-prefill
// its cache: these compute the rows anyway, and only the vocabulary projection of at most
// max_scored rows is added. With ScoreMoment::kReprefill this happens before the response's next
// token is sampled; with kEnd when the response ends or pauses, from hidden states that the
// re-prefill cached, so a response that several syncs interrupt is scored for the last one only.
// Both give the same score. A score is always of one version: a newer sync or a preemption
// restarts it; a response that is still too short keeps its old score. The oldest responses are
// re-prefilled first and decode meanwhile, so the engine always samples unless syncs follow each
// other faster than one response can be re-prefilled.
//
// A request may ask for the log-probabilities of its prompt (score_prompt). The passes that
// prefill the prompt compute them before the first token is sampled.
//
// A response whose rules say so pauses at a stop: it releases its blocks, is interrupted by
// syncs like any other response, and continues after the tool tokens passed to Continue, or ends
// with FinishPaused.
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
  kReprefill,  // recompute the cache under the new weights, and score prefixes
  kKeep,       // continue with the old cache; nothing is scored
  kDrain,      // finish the started responses, then swap; nothing is interrupted
};

enum class ScoreMoment { kReprefill, kEnd };

struct RolloutOptions {
  SyncMode sync_mode = SyncMode::kReprefill;
  // Prefix score: off, or over the first max_scored policy tokens of responses
  // that have at least min_scored.
  bool score_prefixes = true;
  int64_t min_scored = 32;
  int64_t max_scored = 1024;
  // kEnd needs a decoder with cached hidden states.
  ScoreMoment score_moment = ScoreMoment::kReprefill;
  // Rows of one pass. At most three quarters as many responses run.
  int64_t max_pass_tokens = 512;
  // Running responses. 0 = as memory and max_pass_tokens allow.
  int64_t max_running = 0;

  [[nodiscard]] Status Validate() const;
};

// What a pass did; a virtual clock charges for it.
struct StepReport {
  std::vector<FinishedResponse> finished;
  std::vector<MemberId> paused;           // met a stop rule and wait for Continue
  std::vector<MemberId> sampled;          // one token each, in order
  int64_t num_decode_rows = 0;            // rows that continue a cached sequence by one
  int64_t num_prefill_rows = 0;           // all others, re-prefill included
  int64_t num_reprefill_rows = 0;         // rows that a sync invalidated
  int64_t num_scored_rows = 0;            // rows that a prefix score read, cached ones too
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

  // Version and weights for the next tokens. Versions grow. Takes effect at once, except in drain
  // mode: there Step installs the weights when no started response is left; until then other
  // responses wait, and a newer sync replaces this one. The first sync interrupts nothing.
  Status Sync(PolicyVersion version, std::shared_ptr<const DecoderWeights> weights);
  // Every response is re-prefilled before its next token; nothing is interrupted or scored. With
  // kKeep, call it before a sync after which responses must not continue with the old cache.
  void InvalidateCache();
  // The current version; none before the first sync.
  std::optional<PolicyVersion> version() const;
  const Decoder& decoder() const;

  Status Submit(GroupRequest request);
  // Ends the unfinished members of a group, or one of them, and returns a request that resumes
  // them; none if there were none.
  std::optional<GroupRequest> Cancel(GroupId group);
  std::optional<GroupRequest> Cancel(MemberId id);

  // Appends tool tokens to a paused response and resumes it. They count toward max_tokens; none =
  // just resume. Refused (it stays paused): ids out of the vocabulary, or so many tokens that
  // max_tokens is reached. REQUIRES: it is paused
  Status Continue(MemberId id, std::span<const TokenId> tool_tokens);
  // Ends a paused response. REQUIRES: it is paused
  FinishedResponse FinishPaused(MemberId id);

  // Runs one pass, or nothing if there is nothing to do. After an error (the device failed, or no
  // sync came yet) nothing was sampled or lost: the next Step re-prefills the cache.
  Result<StepReport> Step();
  // Whether Step has something to do; false while all unfinished responses are paused.
  bool busy() const;

  // Requests that resume every unfinished response, in order of arrival, for a checkpoint.
  // Submitted to a fresh engine at the same version they give the same bits. (A response moved
  // to an engine at a newer version was interrupted: the caller sets num_interrupts and
  // awaits_score.)
  std::vector<GroupRequest> Unfinished() const;
  // The response so far, for streaming, valid until the next non-const call; null if there is no
  // such unfinished response.
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
