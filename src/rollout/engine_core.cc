#include "rollout/engine_core.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/check.h"
#include "model/decoder.h"
#include "rollout/prefix_scorer.h"
#include "rollout/response_table.h"
#include "rollout/scheduler.h"

namespace pace {
namespace {

// Score requests for a decoder, and the responses that they belong to.
class ScoreBatch {
 public:
  void Clear() {
    parts_.clear();
    requests_.clear();
  }

  // Adds requests for the sampled ones among these tokens of a response; row_of(t) is the row
  // that token t follows.
  template <typename RowOf>
  void Add(MemberSlot slot, const LiveResponse& live, PrefixScorer::Range tokens,
           const RowOf& row_of) {
    if (tokens.size() == 0) return;
    parts_.push_back({slot, tokens});
    const double scale = live.group->request.SamplingOf(live.member).scale();
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      const TokenRecord& token = live.response.tokens[static_cast<size_t>(t)];
      if (token.is_tool) continue;
      requests_.push_back({.row = row_of(t), .target = token.id, .scale = scale});
    }
  }
  const std::vector<ScoreRequest>& requests() const { return requests_; }

  // Log-probabilities in the order of the requests. Responses whose prefix score is complete
  // get it and no longer await one.
  void SetScores(ResponseTable& table, std::span<const float> logprobs) const;

 private:
  struct Part {
    MemberSlot slot = 0;
    PrefixScorer::Range tokens;
  };
  std::vector<Part> parts_;
  std::vector<ScoreRequest> requests_;
};

void ScoreBatch::SetScores(ResponseTable& table, std::span<const float> logprobs) const {
  PACE_CHECK(logprobs.size() == requests_.size(), logprobs.size(), " scores");
  size_t next = 0;
  for (const Part& part : parts_) {
    LiveResponse& live = table.At(part.slot);
    for (int64_t t = part.tokens.begin; t < part.tokens.end; ++t) {
      const TokenRecord& token = live.response.tokens[static_cast<size_t>(t)];
      if (token.is_tool) continue;
      const double recorded = token.logprob;
      const double difference = std::abs(static_cast<double>(logprobs[next++]) - recorded);
      const std::optional<double> score = live.scorer.Add(t, difference);
      if (!score) continue;
      live.response.prefix_score = score;
      live.response.awaits_score = false;
    }
  }
}

// Score requests for the prompts of responses that want them, one range of rows each.
class PromptScores {
 public:
  void Clear() {
    parts_.clear();
    requests_.clear();
  }

  // Row i of the chunk predicts prompt token start + i + 1. Rows that were scored before are
  // skipped: a preempted response runs them again.
  void Add(const PlannedChunk& chunk, const LiveResponse& live, int64_t first_row) {
    const std::vector<TokenId>& prompt = live.group->request.prompt_tokens;
    const auto num_scored = std::ssize(live.response.prompt_logprobs);
    const int64_t begin = std::max<int64_t>(chunk.start, num_scored);
    const int64_t end = std::min(chunk.start + chunk.num_tokens, std::ssize(prompt) - 1);
    if (begin >= end) return;
    PACE_CHECK(begin == num_scored, "row ", num_scored, " of a prompt was not scored");
    parts_.push_back({chunk.slot, end - begin});
    for (int64_t row = begin; row < end; ++row) {
      requests_.push_back({.row = first_row + row - chunk.start,
                           .target = prompt[static_cast<size_t>(row + 1)],
                           .scale = 1.0});
    }
  }
  const std::vector<ScoreRequest>& requests() const { return requests_; }

  // Log-probabilities in the order of the requests.
  void SetScores(ResponseTable& table, std::span<const float> logprobs) const {
    PACE_CHECK(logprobs.size() == requests_.size(), logprobs.size(), " prompt scores");
    auto from = logprobs.begin();
    for (const Part& part : parts_) {
      std::vector<float>& scores = table.At(part.slot).response.prompt_logprobs;
      scores.insert(scores.end(), from, from + part.num_rows);
      from += part.num_rows;
    }
  }

 private:
  struct Part {
    MemberSlot slot = 0;
    int64_t num_rows = 0;
  };
  std::vector<Part> parts_;
  std::vector<ScoreRequest> requests_;
};

// Context lengths of rows [start, start + n): start + 1, ..., start + n.
int64_t SumOfContexts(int64_t start, int64_t n) {
  return n * start + n * (n + 1) / 2;
}

}  // namespace

Status RolloutOptions::Validate() const {
  if (min_scored < 1) return InvalidArgument("min_scored = ", min_scored, ": must be >= 1");
  if (max_scored < 1) return InvalidArgument("max_scored = ", max_scored, ": must be >= 1");
  return SchedulerOptions{
      .num_blocks = 1, .max_pass_tokens = max_pass_tokens, .max_running = max_running}
      .Validate();
}

struct EngineCore::State {
  struct PendingSync {
    PolicyVersion version;
    std::shared_ptr<const DecoderWeights> weights;
  };
  // A chunk of the present pass that asks for a sample.
  struct SampledChunk {
    MemberSlot slot = 0;
    std::span<const BlockId> blocks;
  };

  State(std::unique_ptr<Decoder> given_decoder, std::optional<Tokenizer> given_tokenizer,
        const RolloutOptions& given_options)
      : decoder(std::move(given_decoder)),
        tokenizer(std::move(given_tokenizer)),
        options(given_options),
        scheduler({.num_blocks = decoder->num_blocks(),
                   .max_pass_tokens = options.max_pass_tokens,
                   .max_running = options.max_running,
                   .speculative_room = decoder->speculates()}),
        table(tokenizer ? &*tokenizer : nullptr) {}

  GroupRequest Cancel(const LiveGroup& group, const std::vector<MemberSlot>& slots);
  void Apply(PolicyVersion new_version, std::shared_ptr<const DecoderWeights> weights);
  void InvalidateCache();
  void Interrupt(LiveResponse& live) const;
  void WantScore(LiveResponse& live) const;
  void BuildPass(const PassPlan& plan, StepReport& report);
  void AddChunk(const PlannedChunk& chunk, StepReport& report);
  Status ScoreEnding(const std::vector<Sampled>& samples, StepReport& report);
  void TakeSamples(const std::vector<Sampled>& samples, StepReport& report);

  const std::unique_ptr<Decoder> decoder;
  const std::optional<Tokenizer> tokenizer;
  const RolloutOptions options;
  Scheduler scheduler;
  ResponseTable table;
  std::optional<PolicyVersion> version;
  std::optional<PendingSync> pending;

  // Of one pass, kept for their memory.
  Pass pass;
  std::vector<SampledChunk> sampled;
  ScoreBatch scores;
  PromptScores prompt_scores;
  std::vector<RowEnd> ends;
};

EngineCore::EngineCore(std::unique_ptr<Decoder> decoder, std::optional<Tokenizer> tokenizer,
                       const RolloutOptions& options) {
  const Status status = options.Validate();
  PACE_CHECK(status.ok(), status.message());
  state_ = std::make_unique<State>(std::move(decoder), std::move(tokenizer), options);
}

EngineCore::~EngineCore() = default;

Status EngineCore::Sync(PolicyVersion version, std::shared_ptr<const DecoderWeights> weights) {
  State& s = *state_;
  PACE_CHECK(weights != nullptr, "a sync without weights");
  const std::optional<PolicyVersion> newest = s.pending ? s.pending->version : s.version;
  if (newest && version <= *newest) {
    return InvalidArgument("sync to version ", version, ": the engine has ", *newest,
                           " (versions must grow)");
  }
  const bool must_wait = s.options.sync_mode == SyncMode::kDrain && s.version.has_value() &&
                         s.scheduler.num_started() > 0;
  if (must_wait) {
    s.pending = {version, std::move(weights)};
    s.scheduler.set_hold_new(true);
  } else {
    s.Apply(version, std::move(weights));
  }
  return Status::Ok();
}

void EngineCore::State::Apply(PolicyVersion new_version,
                              std::shared_ptr<const DecoderWeights> weights) {
  decoder->Install(std::move(weights));
  const bool is_first = !version.has_value();
  version = new_version;
  pending.reset();
  scheduler.set_hold_new(false);
  if (is_first) return;
  if (options.sync_mode != SyncMode::kDrain) {
    for (const std::unique_ptr<LiveResponse>& live : table.responses()) {
      if (live != nullptr && live->num_tokens() > 0) Interrupt(*live);
    }
  }
  if (options.sync_mode != SyncMode::kKeep) InvalidateCache();
}

void EngineCore::State::InvalidateCache() {
  scheduler.InvalidateCache();
  // A prompt's scores are of one version: the one that samples the first token.
  for (const std::unique_ptr<LiveResponse>& live : table.responses()) {
    if (live != nullptr && live->num_tokens() == 0) live->response.prompt_logprobs.clear();
  }
}

void EngineCore::InvalidateCache() {
  state_->InvalidateCache();
}

void EngineCore::State::Interrupt(LiveResponse& live) const {
  ++live.response.num_interrupts;
  const bool is_scored = options.sync_mode == SyncMode::kReprefill && options.score_prefixes &&
                         live.response.num_policy_tokens() >= options.min_scored;
  if (is_scored) WantScore(live);
}

// Of what the last sync interrupted: the tokens before those of the present version.
void EngineCore::State::WantScore(LiveResponse& live) const {
  int64_t end = 0;
  int64_t num_scored = 0;
  for (; end < live.num_tokens() && num_scored < options.max_scored; ++end) {
    const TokenRecord& token = live.response.tokens[static_cast<size_t>(end)];
    if (token.version == *version) break;
    if (!token.is_tool) ++num_scored;
  }
  live.response.awaits_score = num_scored > 0;
  if (num_scored > 0) live.scorer.Want(end, num_scored);
}

std::optional<PolicyVersion> EngineCore::version() const {
  return state_->version;
}

const Decoder& EngineCore::decoder() const {
  return *state_->decoder;
}

Status EngineCore::Submit(GroupRequest request) {
  State& s = *state_;
  const std::string name = Concat("group ", request.group);
  if (s.table.Find(request.group) != nullptr) {
    return InvalidArgument(name, ": is in the engine already");
  }
  const Status valid = CheckRequest(request, s.decoder->config(), s.tokenizer.has_value());
  if (!valid.ok()) return valid.At(name);
  std::vector<PartialResponse> resumed = std::exchange(request.resumed, {});
  resumed.resize(static_cast<size_t>(request.num_members()));
  std::vector<int64_t> num_generated;
  for (const PartialResponse& response : resumed) {
    num_generated.push_back(static_cast<int64_t>(response.tokens.size()));
  }
  const auto slots = s.scheduler.Add(static_cast<int64_t>(request.prompt_tokens.size()),
                                     request.stop.max_tokens, num_generated);
  if (!slots.ok()) return slots.status().At(name);
  s.table.Add(std::move(request), std::move(resumed), *slots);
  for (const MemberSlot slot : *slots) {
    LiveResponse& live = s.table.At(slot);
    if (live.response.paused) s.scheduler.Pause(slot);
    if (!std::exchange(live.response.awaits_score, false)) continue;
    if (s.options.score_prefixes) s.WantScore(live);
  }
  return Status::Ok();
}

GroupRequest EngineCore::State::Cancel(const LiveGroup& group,
                                       const std::vector<MemberSlot>& slots) {
  GroupRequest request = table.Resumable(group, slots);
  for (const MemberSlot slot : slots) {
    scheduler.Cancel(slot);
    table.Remove(slot);
  }
  return request;
}

std::optional<GroupRequest> EngineCore::Cancel(GroupId group) {
  const LiveGroup* live = state_->table.Find(group);
  if (live == nullptr) return std::nullopt;
  return state_->Cancel(*live, std::vector(live->slots));
}

std::optional<GroupRequest> EngineCore::Cancel(MemberId id) {
  const std::optional<MemberSlot> slot = state_->table.Find(id);
  if (!slot) return std::nullopt;
  return state_->Cancel(*state_->table.At(*slot).group, {*slot});
}

Result<StepReport> EngineCore::Step() {
  State& s = *state_;
  StepReport report;
  if (!s.version) return Unavailable("the engine has no weights: sync before the first step");
  if (s.pending && s.scheduler.num_started() == 0) {
    report.synced = s.pending->version;
    s.Apply(s.pending->version, std::move(s.pending->weights));
  }
  const PassPlan& plan = s.scheduler.Next();
  report.num_preempted = static_cast<int64_t>(plan.preempted.size());
  if (plan.empty()) return report;
  s.BuildPass(plan, report);
  if (!plan.copies.empty()) s.decoder->CopyBlocks(plan.copies);
  const Result<PassResult> result = s.decoder->Run(s.pass);
  Status status = result.status();
  if (status.ok()) {
    const std::span<const float> logprobs = result->logprobs;
    const size_t num_prefix_scores = s.scores.requests().size();
    PACE_CHECK(logprobs.size() >= num_prefix_scores, logprobs.size(), " scores");
    s.scores.SetScores(s.table, logprobs.first(num_prefix_scores));
    s.prompt_scores.SetScores(s.table, logprobs.subspan(num_prefix_scores));
    status = s.ScoreEnding(result->samples, report);
  }
  if (!status.ok()) {
    s.scheduler.Abandon();
    return status;
  }
  s.TakeSamples(result->samples, report);
  return report;
}

void EngineCore::State::BuildPass(const PassPlan& plan, StepReport& report) {
  pass.tokens.clear();
  pass.chunks.clear();
  pass.samples.clear();
  sampled.clear();
  scores.Clear();
  prompt_scores.Clear();
  for (const PlannedChunk& chunk : plan.chunks) AddChunk(chunk, report);
  pass.scores = scores.requests();
  pass.scores.insert(pass.scores.end(), prompt_scores.requests().begin(),
                     prompt_scores.requests().end());
  report.num_scored_rows = std::ssize(pass.scores);
}

void EngineCore::State::AddChunk(const PlannedChunk& chunk, StepReport& report) {
  const LiveResponse& live = table.At(chunk.slot);
  const auto first_row = static_cast<int64_t>(pass.tokens.size());
  for (int64_t i = 0; i < chunk.num_tokens; ++i) {
    pass.tokens.push_back(live.TokenAt(chunk.start + i));
  }
  pass.chunks.push_back(
      {.start = chunk.start, .num_tokens = chunk.num_tokens, .blocks = chunk.blocks});
  const bool decodes = chunk.num_tokens == 1 && chunk.reaches_end && chunk.num_reprefilled == 0;
  (decodes ? report.num_decode_rows : report.num_prefill_rows) += chunk.num_tokens;
  report.num_reprefill_rows += chunk.num_reprefilled;
  const int64_t contexts = SumOfContexts(chunk.start, chunk.num_tokens);
  report.num_context_tokens += contexts;
  if (decodes) report.num_decode_context_tokens += contexts;
  if (chunk.reaches_end) {
    const GroupRequest& request = live.group->request;
    sampled.push_back({chunk.slot, chunk.blocks});
    pass.samples.push_back({.row = first_row + chunk.num_tokens - 1,
                            .options = request.SamplingOf(live.member),
                            .key = {.seed = request.seed,
                                    .prompt = request.prompt.value(),
                                    .response = live.member,
                                    .token = live.num_tokens()}});
  }
  if (live.group->request.score_prompt) prompt_scores.Add(chunk, live, first_row);
  if (chunk.is_shared_prompt || !live.scorer.wanted() || options.score_moment == ScoreMoment::kEnd)
    return;
  const int64_t num_prompt = live.num_prompt_tokens();
  scores.Add(chunk.slot, live, live.scorer.TokensIn(chunk.start, chunk.num_tokens, num_prompt),
             [&](int64_t t) { return first_row + num_prompt - 1 + t - chunk.start; });
}

// Before anything changes: a device that fails here loses no token.
Status EngineCore::State::ScoreEnding(const std::vector<Sampled>& samples, StepReport& report) {
  if (options.score_moment != ScoreMoment::kEnd) return Status::Ok();
  scores.Clear();
  for (size_t i = 0; i < samples.size(); ++i) {
    const LiveResponse& live = table.At(sampled[i].slot);
    if (!live.scorer.wanted() || !StopMatcher(live.matcher).Feed(samples[i].token)) continue;
    const int64_t num_prompt = live.num_prompt_tokens();
    scores.Add(sampled[i].slot, live,
               live.scorer.TokensIn(0, num_prompt + live.num_tokens(), num_prompt),
               [&](int64_t t) { return SlotOf(sampled[i].blocks, num_prompt - 1 + t); });
  }
  PACE_ASSIGN_OR_RETURN(const std::vector<float> logprobs, decoder->ScoreCached(scores.requests()));
  report.num_scored_rows += std::ssize(scores.requests());
  scores.SetScores(table, logprobs);
  return Status::Ok();
}

void EngineCore::State::TakeSamples(const std::vector<Sampled>& samples, StepReport& report) {
  PACE_CHECK(samples.size() == sampled.size(), samples.size(), " samples");
  ends.assign(samples.size(), RowEnd::kGrows);
  report.sampled.reserve(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    LiveResponse& live = table.At(sampled[i].slot);
    PACE_CHECK(!live.response.awaits_score || options.score_moment == ScoreMoment::kEnd,
               "a token is sampled before the prefix is scored");
    live.response.tokens.push_back({.id = samples[i].token,
                                    .version = *version,
                                    .logprob = samples[i].logprob,
                                    .sampled_logprob = samples[i].sampled_logprob});
    report.sampled.push_back(live.id());
    const std::optional<FinishReason> reason = live.matcher.Feed(samples[i].token);
    if (!reason) continue;
    const StopRules& rules = live.group->request.stop;
    if (rules.pauses && *reason != FinishReason::kMaxTokens &&
        live.num_tokens() < rules.max_tokens) {
      ends[i] = RowEnd::kPauses;
      live.response.paused = reason;
      report.paused.push_back(live.id());
      continue;
    }
    ends[i] = RowEnd::kEnds;
    report.finished.push_back({live.id(), std::move(live.response), *reason});
    table.Remove(sampled[i].slot);
  }
  scheduler.Commit(ends);
}

Status EngineCore::Continue(MemberId id, std::span<const TokenId> tool_tokens) {
  State& s = *state_;
  const std::optional<MemberSlot> slot = s.table.Find(id);
  PACE_CHECK(slot && s.table.At(*slot).response.paused, "response ", id.member, " of group ",
             id.group, " is not paused");
  LiveResponse& live = s.table.At(*slot);
  PACE_RETURN_IF_ERROR(
      CheckToolTokens(live.group->request, live.response, tool_tokens, s.decoder->config()));
  const PolicyVersion last = live.response.tokens.back().version;
  for (const TokenId token : tool_tokens) {
    live.response.tokens.push_back({.id = token, .is_tool = true, .version = last});
    live.matcher.Skip(token);
  }
  live.matcher.BeginTurn();
  live.response.paused.reset();
  s.scheduler.Resume(*slot, static_cast<int64_t>(tool_tokens.size()));
  return Status::Ok();
}

FinishedResponse EngineCore::FinishPaused(MemberId id) {
  State& s = *state_;
  const std::optional<MemberSlot> slot = s.table.Find(id);
  PACE_CHECK(slot && s.table.At(*slot).response.paused, "response ", id.member, " of group ",
             id.group, " is not paused");
  FinishedResponse out{id, std::move(s.table.At(*slot).response), FinishReason::kStopToken};
  out.reason = *std::exchange(out.response.paused, std::nullopt);
  // The score that a last interruption asked for will not come.
  out.response.awaits_score = false;
  s.scheduler.Cancel(*slot);
  s.table.Remove(*slot);
  return out;
}

bool EngineCore::busy() const {
  const Scheduler& scheduler = state_->scheduler;
  if (state_->pending.has_value() && scheduler.num_started() == 0) return true;
  // Nothing new begins while a sync drains.
  return state_->pending.has_value() ? scheduler.num_started() > scheduler.num_paused()
                                     : scheduler.num_unfinished() > scheduler.num_paused();
}

std::vector<GroupRequest> EngineCore::Unfinished() const {
  return state_->table.Unfinished();
}

const PartialResponse* EngineCore::Peek(MemberId id) const {
  const std::optional<MemberSlot> slot = state_->table.Find(id);
  return slot ? &state_->table.At(*slot).response : nullptr;
}

int64_t EngineCore::num_unfinished() const {
  return state_->scheduler.num_unfinished();
}

int64_t EngineCore::num_running() const {
  return state_->scheduler.num_running();
}

int64_t EngineCore::num_free_blocks() const {
  return state_->scheduler.num_free_blocks();
}

void EngineCore::CheckInvariants() const {
  state_->scheduler.CheckInvariants();
  const int64_t num_responses = state_->table.CheckInvariants();
  PACE_CHECK(num_responses == num_unfinished(), num_responses, " responses, ", num_unfinished(),
             " unfinished");
}

}  // namespace pace
