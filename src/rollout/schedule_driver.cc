#include "rollout/schedule_driver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "rollout/block_pool.h"

namespace pace {
namespace {

// After this many steps nothing disturbs the engine: syncs that come faster than a cache is
// re-prefilled would keep it from ever sampling.
constexpr int64_t kWildSteps = 1000;

}  // namespace

ScheduleDriver::ScheduleDriver(ScheduleWorld& world, const ScheduleOptions& options, uint64_t seed)
    : world_(world), options_(options), random_(seed) {
  NewEngine();
}

int64_t ScheduleDriver::Book::num_sampled() const {
  return std::count_if(tokens.begin(), tokens.end(),
                       [](const TokenRecord& token) { return !token.is_tool; });
}

int64_t ScheduleDriver::Book::ScoredEnd(int64_t most, PolicyVersion version) const {
  int64_t num_sampled = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].version == version) return static_cast<int64_t>(i);
    if (tokens[i].is_tool) continue;
    if (++num_sampled == most) return static_cast<int64_t>(i) + 1;
  }
  return static_cast<int64_t>(tokens.size());
}

void ScheduleDriver::Fail(const std::string& what) {
  if (failure_.empty()) failure_ = Concat("after ", num_steps_, " steps: ", what);
}

bool ScheduleDriver::Run() {
  const auto all_came = [this] { return num_submitted_ == options_.num_groups; };
  while (failure_.empty() &&
         (engine_->busy() || !all_came() || !set_aside_.empty() || AnyRests())) {
    if (!all_came() && (random_.Chance(0.1) || !engine_->busy())) Submit(RandomRequest());
    if (random_.Chance(0.1) || !engine_->busy()) BringBack();
    if (num_steps_ < kWildSteps) Disturb();
    Answer();
    Step();
    engine_->CheckInvariants();
    if (num_steps_ > 50 * kWildSteps) Fail("no end in sight");
  }
  if (!failure_.empty()) return false;
  if (!books_.empty()) Fail(Concat(books_.size(), " responses were lost"));
  if (engine_->num_free_blocks() != num_blocks_) {
    Fail(Concat(num_blocks_ - engine_->num_free_blocks(), " blocks leaked"));
  }
  return failure_.empty();
}

void ScheduleDriver::Disturb() {
  if (random_.Chance(options_.sync_chance)) Sync();
  if (random_.Chance(options_.cancel_chance)) Cancel();
  if (random_.Chance(options_.restart_chance)) Restart();
  if (random_.Chance(options_.failure_chance)) world_.FailSoon();
}

void ScheduleDriver::NewEngine() {
  const int64_t least = BlocksOf(options_.max_prompt + options_.max_tokens) + 1;
  num_blocks_ = least + random_.Below(options_.max_spare_blocks + 1);
  const RolloutOptions options{
      .sync_mode = options_.sync_mode,
      .score_prefixes = true,
      .min_scored = options_.min_scored,
      .max_scored = options_.max_scored,
      .score_moment = random_.Chance(0.5) ? ScoreMoment::kEnd : ScoreMoment::kReprefill,
      .max_pass_tokens = random_.Between(1, options_.max_pass_tokens),
      .max_running = random_.Chance(0.2) ? random_.Between(1, 4) : 0};
  engine_ = std::make_unique<EngineCore>(world_.MakeDecoder(num_blocks_, options_.sync_mode),
                                         options_.tokenizer, options);
  const Status status = engine_->Sync(version_, world_.Weights(version_));
  if (!status.ok()) Fail(status.message());
}

GroupRequest ScheduleDriver::RandomRequest() {
  GroupRequest request;
  request.group = GroupId(100 + num_submitted_);
  request.prompt = PromptIndex(random_.Below(1000));
  request.seed = static_cast<uint64_t>(random_.Below(1 << 20));
  const int64_t vocab = world_.config().vocab_size;
  for (int64_t i = random_.Between(1, options_.max_prompt); i > 0; --i) {
    request.prompt_tokens.push_back(static_cast<TokenId>(random_.Below(vocab)));
  }
  request.num_responses = random_.Between(1, options_.max_responses);
  switch (random_.Below(4)) {
    case 0:
      request.sampling = {.temperature = 0};
      break;
    case 1:
      request.sampling = {.temperature = 0.7, .top_k = 5, .top_p = 0.9};
      break;
    default:
      request.sampling = {.temperature = random_.Chance(0.5) ? 1.0 : 1.3};
  }
  if (random_.Chance(0.2)) request.greedy_member = random_.Below(request.num_responses);
  request.stop.max_tokens = random_.Between(1, options_.max_tokens);
  if (random_.Chance(0.3)) {
    request.stop.stop_tokens = {static_cast<TokenId>(random_.Below(vocab))};
  }
  if (options_.tokenizer && random_.Chance(0.3)) {
    std::vector<TokenId> ids;
    for (int64_t i = random_.Between(1, 3); i > 0; --i) {
      ids.push_back(static_cast<TokenId>(random_.Below(vocab)));
    }
    request.stop.stop_strings = {options_.tokenizer->Decode(ids)};
  }
  request.stop.pauses = random_.Chance(0.4);
  ++num_submitted_;
  return request;
}

void ScheduleDriver::Submit(GroupRequest request) {
  const bool is_first = requests_.emplace(request.group, request).second;
  for (int64_t i = 0; i < request.num_members(); ++i) {
    Book& book = books_[{request.group, request.member(i)}];
    if (is_first || !request.resumed[static_cast<size_t>(i)].awaits_score) continue;
    const PolicyVersion version = *engine_->version();
    book.due = {version, book.ScoredEnd(options_.max_scored, version)};
  }
  const Status status = engine_->Submit(std::move(request));
  if (!status.ok()) Fail(status.message());
}

void ScheduleDriver::Sync() {
  version_ = PolicyVersion(version_.step() + random_.Between(1, 2));
  const Status status = engine_->Sync(version_, world_.Weights(version_));
  if (!status.ok()) Fail(status.message());
  if (engine_->version() == version_) OnSynced(version_);
}

void ScheduleDriver::OnSynced(PolicyVersion version) {
  if (options_.sync_mode == SyncMode::kDrain) return;
  for (auto& [id, book] : books_) {
    if (engine_->Peek(id) == nullptr || book.tokens.empty()) continue;
    ++book.num_interrupts;
    ++num_interrupted_;
    const bool too_short = book.num_sampled() < options_.min_scored;
    if (options_.sync_mode == SyncMode::kKeep || too_short) continue;
    book.due = {version, book.ScoredEnd(options_.max_scored, version)};
  }
}

void ScheduleDriver::Cancel() {
  if (books_.empty()) return;
  const auto chosen = std::next(books_.begin(), random_.Below(static_cast<int64_t>(books_.size())));
  const MemberId id = chosen->first;
  const bool is_live = engine_->Peek(id) != nullptr;
  std::optional<GroupRequest> request =
      random_.Chance(0.5) ? engine_->Cancel(id.group) : engine_->Cancel(id);
  if (!request) {
    if (is_live) Fail("a live response was not cancelled");
    return;
  }
  engine_->CheckInvariants();
  CheckCancelled(*request);
  if (random_.Chance(0.5)) {
    set_aside_.push_back(*std::move(request));
    return;
  }
  for (const int64_t member : request->members) books_.erase({id.group, member});
}

void ScheduleDriver::BringBack() {
  if (set_aside_.empty()) return;
  // While others of the group are in the engine its name is taken.
  const GroupId group = set_aside_.back().group;
  for (int64_t i = 0; i < requests_.at(group).num_responses; ++i) {
    if (engine_->Peek({group, i}) != nullptr) return;
  }
  GroupRequest request = std::move(set_aside_.back());
  set_aside_.pop_back();
  Submit(std::move(request));
}

void ScheduleDriver::CheckCancelled(const GroupRequest& request) {
  for (size_t i = 0; i < request.members.size(); ++i) {
    const Book& book = books_.at({request.group, request.members[i]});
    if (request.resumed[i].tokens != book.tokens) Fail("cancelling lost tokens");
    if (request.resumed[i].num_interrupts != book.num_interrupts) Fail("lost interrupts");
    if (request.resumed[i].paused.has_value() != book.paused) Fail("forgot whether it is paused");
  }
}

void ScheduleDriver::Restart() {
  std::vector<GroupRequest> unfinished = engine_->Unfinished();
  // A sync that was still draining is asked of the new engine from the start.
  NewEngine();
  for (GroupRequest& request : unfinished) {
    CheckCancelled(request);
    Submit(std::move(request));
  }
}

bool ScheduleDriver::AnyRests() const {
  return std::any_of(books_.begin(), books_.end(),
                     [](const auto& entry) { return entry.second.paused; });
}

void ScheduleDriver::Answer() {
  std::vector<MemberId> paused;
  for (const auto& [id, book] : books_) {
    if (book.paused && engine_->Peek(id) != nullptr) paused.push_back(id);
  }
  for (const MemberId id : paused) {
    if (engine_->busy() && !random_.Chance(0.2)) continue;
    Book& book = books_.at(id);
    book.paused = false;
    std::vector<TokenId> tool_tokens;
    for (int64_t i = random_.Below(6); i > 0; --i) {
      tool_tokens.push_back(static_cast<TokenId>(random_.Below(world_.config().vocab_size)));
    }
    const int64_t max_tokens = requests_.at(id.group).stop.max_tokens;
    const bool fits = static_cast<int64_t>(book.tokens.size() + tool_tokens.size()) < max_tokens;
    const bool ends = random_.Chance(0.2);
    if (!ends || !fits) {
      const Status status = engine_->Continue(id, tool_tokens);
      if (status.ok() != fits) Fail(Concat("continued: ", status.message()));
    }
    if (ends || !fits) {
      CheckFinished(engine_->FinishPaused(id));
    } else {
      ++num_continued_;
      const PolicyVersion last = book.tokens.back().version;
      for (const TokenId token : tool_tokens) {
        book.tokens.push_back({.id = token, .is_tool = true, .version = last});
      }
    }
    engine_->CheckInvariants();
  }
}

void ScheduleDriver::Step() {
  ++num_steps_;
  const Result<StepReport> report = engine_->Step();
  if (!report.ok()) {
    if (report.status().message() != "the device failed") Fail(report.status().message());
    return;
  }
  if (report->synced) OnSynced(*report->synced);
  num_preempted_ += report->num_preempted;
  CheckSampled(*report);
  for (const MemberId id : report->paused) {
    Book& book = books_.at(id);
    book.paused = true;
    book.turns.push_back(book.tokens.size());
  }
  for (const FinishedResponse& finished : report->finished) CheckFinished(finished);
}

void ScheduleDriver::CheckSampled(const StepReport& report) {
  for (const MemberId id : report.sampled) {
    const PartialResponse* response = engine_->Peek(id);
    for (const FinishedResponse& finished : report.finished) {
      if (finished.id == id) response = &finished.response;
    }
    if (response == nullptr || !books_.contains(id)) return Fail("a token for no response");
    Book& book = books_.at(id);
    if (response->tokens.size() != book.tokens.size() + 1) return Fail("not one token more");
    if (response->tokens.back().version != *engine_->version()) return Fail("a wrong version");
    book.tokens.push_back(response->tokens.back());
    book.score = book.due;
  }
}

void ScheduleDriver::CheckFinished(const FinishedResponse& finished) {
  ++num_finished_;
  const Book& book = books_.at(finished.id);
  const PartialResponse& response = finished.response;
  // As if the group were sampled as this member is.
  GroupRequest request = requests_.at(finished.id.group);
  request.sampling = request.SamplingOf(finished.id.member);
  if (response.tokens != book.tokens) Fail("the response is not what was sampled");
  if (response.num_interrupts != book.num_interrupts) {
    Fail(Concat(response.num_interrupts, " interrupts, not ", book.num_interrupts));
  }
  if (response.awaits_score) Fail("finished before it was scored");
  if (response.prefix_score.has_value() != book.score.has_value()) {
    Fail("scored when it should not be, or not when it should");
  } else if (book.score) {
    ++num_scored_;
    const double expected = ReferenceScore(request, response.tokens, *book.score);
    if (*response.prefix_score != expected) {
      Fail(Concat("prefix score ", *response.prefix_score, ", not ", expected));
    }
  }
  CheckReason(request, finished, book);
  CheckAgainstReference(request, finished);
  books_.erase(finished.id);
}

double ScheduleDriver::ReferenceScore(const GroupRequest& request,
                                      const std::vector<TokenRecord>& tokens, const DueScore& due) {
  const std::vector<float> logprobs = world_.Rescore(request, tokens, due.end, due.version);
  double sum = 0;
  double count = 0;
  for (int64_t t = 0; t < due.end; ++t) {
    const auto at = static_cast<size_t>(t);
    if (tokens[at].is_tool) continue;
    sum += std::abs(static_cast<double>(logprobs[at]) - static_cast<double>(tokens[at].logprob));
    count += 1;
  }
  return sum / count;
}

std::optional<FinishReason> ScheduleDriver::ReasonAt(const StopRules& stop,
                                                     std::span<const TokenId> turn,
                                                     size_t num_tokens) const {
  for (const TokenId id : stop.stop_tokens) {
    if (id == turn.back()) return FinishReason::kStopToken;
  }
  for (const std::string& text : stop.stop_strings) {
    const bool found = options_.tokenizer->Decode(turn).find(text) != std::string::npos;
    if (found) return FinishReason::kStopString;
  }
  const bool full = static_cast<int64_t>(num_tokens) == stop.max_tokens;
  return full ? std::optional(FinishReason::kMaxTokens) : std::nullopt;
}

void ScheduleDriver::CheckReason(const GroupRequest& request, const FinishedResponse& finished,
                                 const Book& book) {
  std::vector<TokenId> turn;
  size_t num_tokens = 0;
  for (const TokenRecord& token : finished.response.tokens) {
    ++num_tokens;
    if (token.is_tool) continue;
    turn.push_back(token.id);
    const std::optional<FinishReason> reason = ReasonAt(request.stop, turn, num_tokens);
    const bool is_last = num_tokens == finished.response.tokens.size();
    const bool paused =
        std::find(book.turns.begin(), book.turns.end(), num_tokens) != book.turns.end();
    if (reason.has_value() != (is_last || paused) || (is_last && *reason != finished.reason)) {
      Fail(Concat("ended after ", finished.response.tokens.size(), " tokens for ",
                  FinishReasonName(finished.reason), ", token ", num_tokens));
      return;
    }
    if (paused) turn.clear();
  }
}

void ScheduleDriver::CheckAgainstReference(const GroupRequest& request,
                                           const FinishedResponse& finished) {
  const std::vector<TokenRecord>& tokens = finished.response.tokens;
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  for (int64_t first = 0, end = 0; first < num_tokens; first = end) {
    const PolicyVersion version = tokens[static_cast<size_t>(first)].version;
    while (end < num_tokens && tokens[static_cast<size_t>(end)].version == version) ++end;
    const std::vector<Sampled> expected =
        world_.Resample(request, finished.id.member, tokens, first, end, version);
    for (int64_t t = first; t < end; ++t) {
      const TokenRecord& token = tokens[static_cast<size_t>(t)];
      const Sampled& same = expected[static_cast<size_t>(t - first)];
      if (token.is_tool) continue;
      if (token.id != same.token || token.logprob != same.logprob ||
          token.sampled_logprob != same.sampled_logprob) {
        Fail(Concat("token ", t, " of member ", finished.id.member, " is ", token.id, " at ",
                    token.logprob, ", not ", same.token, " at ", same.logprob));
        return;
      }
    }
  }
}

}  // namespace pace
