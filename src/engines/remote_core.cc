#include "engines/remote_core.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/printable.h"
#include "engines/answer_check.h"

namespace pace {
namespace {

// Answers that break a rule, or fail in the server, before the worker is given up.
constexpr int64_t kMaxFailures = 2;
// Answers that it has too much to do, in a row.
constexpr int64_t kMaxOverloads = 10000;

}  // namespace

RemoteCore::RemoteCore(const Dialect& dialect, RemoteOptions options)
    : dialect_(dialect), options_(std::move(options)) {}

// --- calls and events ---

void RemoteCore::Send(Purpose purpose, HttpCall http, Seconds deadline) {
  const int64_t call = next_call_++;
  calls_.emplace(call, purpose);
  actions_.emplace_back(SendCall{call, std::move(http), deadline});
}

void RemoteCore::Emit(RolloutEvent event) {
  actions_.emplace_back(std::move(event));
}

std::vector<RemoteAction> RemoteCore::TakeActions() {
  return std::exchange(actions_, {});
}

void RemoteCore::Go(const Status& error, Loss loss) {
  if (gone()) return;
  if (phase_ != Phase::kJoining) ++num_failures_;
  for (const auto& [call, purpose] : calls_) actions_.emplace_back(DropCall{call});
  calls_.clear();
  groups_.clear();
  deferred_.clear();
  sync_.reset();
  next_sync_.reset();
  update_.clear();
  fetching_ = false;
  EndTurn();
  phase_ = Phase::kGone;
  Emit(WorkerGone{error, loss});
}

void RemoteCore::GoFor(const ServerAnswer& answer) {
  const bool keeps_us_out = answer.status == 401 || answer.status == 403 || answer.status == 404;
  Go(Unavailable("answered ", answer.status, ": ", dialect_.ReadError(answer.body)),
     keeps_us_out ? Loss::kUnfit : Loss::kLost);
}

void RemoteCore::Failed(int64_t call, const Status& error) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  const bool opens =
      channel_.has_value() && update_.empty() && found->second == Purpose(Control::kLoad);
  calls_.erase(found);
  Go(opens ? error.At(channel_->NameForErrors()) : error);
}

void RemoteCore::Answered(int64_t call, const ServerAnswer& answer) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  const Purpose purpose = found->second;
  const auto* control = std::get_if<Control>(&purpose);
  if (control != nullptr && *control == Control::kTransfer) return;  // no server answers it
  calls_.erase(found);
  if (control != nullptr) return OnControl(*control, answer);
  const MemberId id = std::get<MemberId>(purpose);
  // The server may have resumed before it says so; the run hears of the sync first.
  if (phase_ == Phase::kResuming) {
    deferred_.emplace_back(id, answer);
  } else {
    OnGenerate(id, answer);
  }
}

void RemoteCore::OnControl(Control control, const ServerAnswer& answer) {
  if (control == Control::kJoin) return OnJoin(answer);
  if (control == Control::kHealth) asks_health_ = false;
  if (control == Control::kLoad) return OnLoad(answer);
  if (answer.status != 200) return GoFor(answer);
  switch (control) {
    case Control::kFetch:
      return OnFetch(answer);
    case Control::kLabel:
      return OnLabel(answer);
    case Control::kPause:
      paused_ = true;
      // A request that reached the server after the pause would wait there for the resume.
      if (Rule() == InFlightRule::kEnd) AbortSent(std::nullopt);
      return LoadIfQuiet();
    case Control::kResume:
      return OnResume();
    default:
      return;
  }
}

void RemoteCore::LookAfter() {
  if (gone() || phase_ == Phase::kNew || phase_ == Phase::kJoining) return;
  // Calls overtake each other: an abort may have come before its request.
  Abort(groups_.AskedToAbort());
  overloaded_ = false;
  if (std::exchange(fetching_, false)) {
    Send(Control::kFetch, dialect_.Fetch(sync_->folder), options_.load_deadline);
  }
  SendWaiting();
  if (asks_health_) return;
  asks_health_ = true;
  Send(Control::kHealth, dialect_.Health(), options_.control_deadline);
}

// --- joining ---

void RemoteCore::Join() {
  PACE_CHECK(phase_ == Phase::kNew, "a worker joins once");
  phase_ = Phase::kJoining;
  Send(Control::kJoin, dialect_.Join().front(), options_.control_deadline);
}

void RemoteCore::OnJoin(const ServerAnswer& answer) {
  const Status status = dialect_.ReadJoin(num_joined_, answer, facts_);
  // A server that is still starting answers, too.
  const bool fits = status.code() != StatusCode::kInvalidArgument;
  if (!status.ok()) return Go(status, fits ? Loss::kLost : Loss::kUnfit);
  const std::vector<HttpCall> calls = dialect_.Join();
  if (++num_joined_ < calls.size()) {
    return Send(Control::kJoin, calls[num_joined_], options_.control_deadline);
  }
  if (const Status unfit = CheckFacts(facts_, options_, Rule() != InFlightRule::kEnd); !unfit.ok())
    return Go(unfit, Loss::kUnfit);
  phase_ = Phase::kServing;
  Emit(WorkerReady{});
  BeginSync();
}

// --- a sync ---

bool RemoteCore::EndsRequests() const {
  return options_.rollout.sync_mode == SyncMode::kReprefill && options_.rollout.score_prefixes;
}

InFlightRule RemoteCore::Rule() const {
  // A drained server has nothing in flight that could go on.
  if (EndsRequests() || options_.rollout.sync_mode == SyncMode::kDrain) return InFlightRule::kEnd;
  return options_.rollout.sync_mode == SyncMode::kKeep ? InFlightRule::kKeep
                                                       : InFlightRule::kRecompute;
}

Status RemoteCore::Sync(ServerWeights weights) {
  const PolicyVersion version = weights.version;
  if (gone()) return Unavailable("sync to version ", version, ": the worker is gone");
  const std::optional<PolicyVersion> newest = next_sync_ ? next_sync_->version
                                              : sync_    ? sync_->version
                                                         : version_;
  if (newest.has_value() && version <= *newest) {
    return InvalidArgument("sync to version ", version, ": ", *newest,
                           " was asked for before (versions must grow)");
  }
  next_sync_ = std::move(weights);
  BeginSync();
  return Status::Ok();
}

bool RemoteCore::WaitsForTurn() {
  // A drained server pauses with nothing in flight.
  const bool interrupts = version_.has_value() && groups_.num_in_server() > 0 &&
                          options_.rollout.sync_mode != SyncMode::kDrain;
  if (!options_.pauses_in_turn || !interrupts || turn_ == Turn::kAllowed) return false;
  if (turn_ == Turn::kNone) {
    turn_ = Turn::kAsked;
    actions_.emplace_back(AskPause{});
  }
  return true;
}

void RemoteCore::AllowPause() {
  if (turn_ != Turn::kAsked) return;
  turn_ = Turn::kAllowed;
  BeginSync();
  // Something else keeps the sync from beginning: others first.
  if (phase_ == Phase::kServing) EndTurn();
}

void RemoteCore::EndTurn() {
  if (std::exchange(turn_, Turn::kNone) != Turn::kNone) actions_.emplace_back(EndPause{});
}

void RemoteCore::BeginSync() {
  if (phase_ != Phase::kServing || !next_sync_.has_value() || SyncWaits()) return;
  if (WaitsForTurn()) return;
  sync_ = std::exchange(next_sync_, std::nullopt);
  paused_ = false;
  num_load_failures_ = 0;
  phase_ = Phase::kChecking;
  if (!facts_.fetches || options_.weights == WeightPath::kChannel) return AskLabel();
  Send(Control::kFetch, dialect_.Fetch(sync_->folder), options_.load_deadline);
}

void RemoteCore::OnFetch(const ServerAnswer& answer) {
  const Result<bool> ready = dialect_.ReadFetch(answer.body);
  if (!ready.ok()) return Go(ready.status());
  fetching_ = !*ready;
  if (*ready) AskLabel();
}

void RemoteCore::AskLabel() {
  if (!version_.has_value()) return PauseServer();
  Send(Control::kLabel, dialect_.Label(), options_.control_deadline);
}

void RemoteCore::OnLabel(const ServerAnswer& answer) {
  const Result<std::string> label = dialect_.ReadLabel(answer.body);
  if (!label.ok()) return Go(label.status());
  const Status status = CheckLabel(*label, options_.run, *version_);
  if (!status.ok()) {
    return Go(status, IsOfAnotherRun(*label, options_.run) ? Loss::kForeign : Loss::kLost);
  }
  PauseServer();
}

void RemoteCore::PauseServer() {
  phase_ = Phase::kPausing;
  // Drained: the pause follows when nothing is in flight.
  if (options_.rollout.sync_mode == SyncMode::kDrain && groups_.num_in_server() > 0) return;
  if (Rule() == InFlightRule::kEnd) groups_.AskToAbort(std::nullopt);
  Send(Control::kPause, dialect_.Pause(Rule()), options_.load_deadline);
}

void RemoteCore::LoadIfQuiet() {
  if (phase_ != Phase::kPausing) return;
  if (Rule() == InFlightRule::kEnd && groups_.num_in_server() > 0) return;
  if (!paused_) {
    const bool asked = std::ranges::any_of(
        calls_, [](const auto& call) { return call.second == Purpose(Control::kPause); });
    if (!asked) Send(Control::kPause, dialect_.Pause(Rule()), options_.load_deadline);
    return;
  }
  phase_ = Phase::kLoading;
  Load();
}

void RemoteCore::Load() {
  const std::string label = LabelOf(options_.run, sync_->version);
  num_loaded_ = 0;
  update_.clear();
  if (options_.weights == WeightPath::kFolder) {
    for (HttpCall& call : dialect_.Load(sync_->folder, label, Rule(), facts_.fetches)) {
      update_.push_back({.http = std::move(call)});
    }
  } else if (channel_.has_value()) {
    update_ = dialect_.Update(sync_->weights, label, Rule(), *channel_);
  } else {
    actions_.emplace_back(OpenChannel{next_call_, facts_.num_workers});
    calls_.emplace(next_call_++, Control::kTransfer);
    return;
  }
  LoadNextPart();
}

void RemoteCore::Invited(int64_t call, const ChannelInvitation& invitation) {
  if (!calls_.contains(call)) return;
  channel_ = invitation;
  Send(Control::kLoad, dialect_.OpenChannel(invitation), options_.load_deadline);
}

void RemoteCore::LoadNextPart() {
  const UpdateCall& part = update_[num_loaded_];
  if (!part.sends.empty()) {
    actions_.emplace_back(SendWeights{next_call_, sync_->weights, part.sends});
    calls_.emplace(next_call_++, Control::kTransfer);
  }
  Send(Control::kLoad, part.http, options_.load_deadline);
}

void RemoteCore::Transferred(int64_t call, const Status& status) {
  if (calls_.erase(call) == 0) return;
  // The channel is of no more use, and nothing is known of the weights that the server has.
  if (!status.ok()) return Go(status);
  EndPartIfDone();
}

// Both sides have to say so: the server and the channel.
void RemoteCore::EndPartIfDone() {
  const bool loads = std::ranges::any_of(calls_, [](const auto& call) {
    return call.second == Purpose(Control::kLoad) || call.second == Purpose(Control::kTransfer);
  });
  if (loads) return;
  // What ended was the opening of the channel.
  if (update_.empty()) return Load();
  if (++num_loaded_ < update_.size()) return LoadNextPart();
  update_.clear();
  ResumeServer();
}

void RemoteCore::OnLoad(const ServerAnswer& answer) {
  const bool opens = update_.empty();
  const bool is_refusal = !opens && answer.status == 400 && update_[num_loaded_].may_be_refused;
  if (answer.status == 200 || is_refusal) return EndPartIfDone();
  const bool by_folder = options_.weights == WeightPath::kFolder;
  const Status error =
      Unavailable(by_folder ? Concat("loading ", sync_->folder)
                  : opens   ? channel_->NameForErrors()
                            : "an update of its weights",
                  " was answered ", answer.status, ": ", dialect_.ReadError(answer.body));
  // What half an update leaves is a mixture: the whole once more, and never a resume.
  if (by_folder && ++num_load_failures_ < kMaxFailures) {
    ++num_failures_;
    return Load();
  }
  Go(error, !by_folder && answer.status == 404 ? Loss::kUnfit : Loss::kLost);
}

void RemoteCore::ResumeServer() {
  phase_ = Phase::kResuming;
  Send(Control::kResume, dialect_.Resume(), options_.control_deadline);
}

void RemoteCore::OnResume() {
  const bool interrupts = version_.has_value();
  version_ = sync_->version;
  sync_.reset();
  EndTurn();
  phase_ = Phase::kServing;
  if (interrupts) groups_.Interrupt(EndsRequests(), options_.rollout.min_scored);
  Emit(WeightsSynced{*version_});
  for (auto& [id, answer] : std::exchange(deferred_, {})) {
    // One of them may have ended its group, or the worker.
    if (groups_.Find(id) != nullptr) OnGenerate(id, answer);
  }
  if (gone()) return;
  BeginSync();
  SendWaiting();
}

// --- what the run asks for ---

void RemoteCore::Submit(GroupRequest request) {
  if (gone()) return;
  const GroupId id = request.group;
  Group group;
  for (int64_t i = 0; i < request.num_members(); ++i) {
    Member& member = group.members[request.member(i)];
    if (!request.resumed.empty()) member.response = request.resumed[static_cast<size_t>(i)];
    if (member.response.paused.has_value()) member.state = Member::State::kResting;
  }
  request.members.clear();
  request.resumed.clear();
  group.request = std::move(request);
  const bool is_new = groups_.emplace(id, std::move(group)).second;
  if (!is_new) return Emit(GroupRefused{id, InvalidArgument("group ", id, ": is there already")});
  SendWaiting();
}

void RemoteCore::Cancel(GroupId id) {
  const auto found = groups_.find(id);
  if (found == groups_.end() || found->second.cancelled) return;
  found->second.cancelled = true;
  AbortSent(id);
  EndCancelledIfQuiet(id);
}

void RemoteCore::Continue(MemberId id, std::span<const TokenId> tool_tokens) {
  Member* const member = groups_.Find(id);
  if (member == nullptr || member->state != Member::State::kResting) return;
  const GroupRequest& request = groups_.at(id.group).request;
  PartialResponse& response = member->response;
  const auto length = static_cast<int64_t>(response.tokens.size() + tool_tokens.size());
  const bool fits =
      length < request.stop.MaxTokensOf(id.member) &&
      std::all_of(
          tool_tokens.begin(), tool_tokens.end(),
          [this](TokenId token) { return token >= 0 && token < options_.vocabulary; });
  if (!fits) return FinishPaused(id);
  const PolicyVersion version = response.tokens.back().version;
  for (const TokenId token : tool_tokens) {
    response.tokens.push_back({.id = token, .is_tool = true, .version = version});
  }
  response.paused.reset();
  member->state = Member::State::kWaiting;
  SendWaiting();
}

void RemoteCore::FinishPaused(MemberId id) {
  Member* const member = groups_.Find(id);
  if (member == nullptr || member->state != Member::State::kResting) return;
  if (!member->response.awaits_score) {
    return Finish(id.group, id.member, *member->response.paused);
  }
  // Nothing is to be sampled any more, but its tokens are to be scored.
  member->state = Member::State::kWaiting;
  SendWaiting();
}

void RemoteCore::Hold() {
  if (gone() || hold_) return;
  hold_ = true;
  AbortSent(std::nullopt);
}

void RemoteCore::Release() {
  hold_ = false;
  SendWaiting();
}

bool RemoteCore::held() const {
  return gone() || (hold_ && phase_ == Phase::kServing && groups_.num_in_server() == 0);
}

// --- responses ---

bool RemoteCore::CanSend() const {
  return phase_ == Phase::kServing && version_.has_value() && !hold_ && !overloaded_;
}

void RemoteCore::SendWaiting() {
  BeginSync();
  if (!CanSend()) return;
  RefusePassed();
  int64_t room = options_.max_requests - groups_.num_in_server();
  // Those that a sync waits for come first, and the others after that sync.
  for (const bool bound : {true, false}) {
    // Requests go on while a sync waits for its turn.
    if (!bound && next_sync_.has_value() && turn_ != Turn::kAsked) return;
    for (auto& [id, group] : groups_) {
      const std::optional<PolicyVersion>& only = group.request.only_version;
      if (group.cancelled || (bound ? only != version_ : only.has_value())) continue;
      for (auto& [index, member] : group.members) {
        if (member.state != Member::State::kWaiting) continue;
        if (room-- <= 0) return;
        SendMember(group, index, member, /*only_scores=*/member.response.paused.has_value());
      }
    }
  }
}

void RemoteCore::RefusePassed() {
  for (const GroupId id : groups_.PassedBy(*version_)) {
    Refuse(id, Unavailable("version ", *groups_.at(id).request.only_version,
                           " is wanted: the server has ", *version_));
  }
}

void RemoteCore::SendMember(Group& group, int64_t index, Member& member, bool only_scores) {
  const GroupRequest& request = group.request;
  const std::vector<TokenRecord>& so_far = member.response.tokens;
  GenerateCall& call = member.sent;
  call = {};
  call.id = Concat(options_.run, "-", request.group, "-", index, "-", next_request_++);
  call.tokens = request.prompt_tokens;
  for (const TokenRecord& token : so_far) call.tokens.push_back(token.id);
  call.sampling = request.SamplingOf(index);
  if (facts_.takes_seeds) call.seed = SeedOf(request, index, so_far.size());
  call.max_tokens =
      only_scores ? 1 : request.stop.MaxTokensOf(index) - static_cast<int64_t>(so_far.size());
  const bool fixed_length = !request.stop.lengths.empty();
  if (!only_scores && !fixed_length) {
    call.stop_tokens = request.stop.stop_tokens;
    call.stop_strings = request.stop.stop_strings;
  }
  if (member.response.awaits_score) call.first_scored = std::ssize(request.prompt_tokens);
  member.sent_under = *version_;
  member.abort_asked = false;
  member.state = only_scores ? Member::State::kScoring : Member::State::kSent;
  member.call = next_call_;
  Send(MemberId{request.group, index}, dialect_.Generate(call), options_.generate_deadline);
}

void RemoteCore::OnGenerate(MemberId id, const ServerAnswer& answer) {
  Member* const member = groups_.Find(id);
  PACE_CHECK(member != nullptr, "an answer to a response that is not there");
  const Member::State state = std::exchange(member->state, Member::State::kWaiting);
  if (answer.status == 401 || answer.status == 403 || answer.status == 404) return GoFor(answer);
  if (answer.status == 400 || answer.status == 413 || answer.status == 422) {
    return Refuse(id.group, InvalidArgument("the server refused a request of group ", id.group,
                                            ": ", dialect_.ReadError(answer.body)));
  }
  if (answer.status == 429 || answer.status == 503) return OnOverload(id, answer);
  if (answer.status != 200) {
    return FailMember(id, Unavailable("a request was answered ", answer.status, ": ",
                                      dialect_.ReadError(answer.body)));
  }
  num_overloads_ = 0;
  const Result<GenerateAnswer> read = dialect_.ReadGenerate(member->sent, answer.body);
  if (!read.ok()) return FailMember(id, read.status().At("an answer"));
  if (state == Member::State::kScoring) return OnScores(id, *member, *read);
  if (const Status taken = TakeAnswer(*member, *read); !taken.ok()) {
    return FailMember(id, taken.At("an answer"));
  }
  if (gone()) return;
  if (read->end != AnswerEnd::kAbort) member->num_failures = 0;
  Settle(id.group, id.member, read->end);
  LoadIfQuiet();
  SendWaiting();
}

void RemoteCore::OnOverload(MemberId id, const ServerAnswer& answer) {
  overloaded_ = true;
  if (++num_overloads_ >= kMaxOverloads) {
    return Go(Unavailable("has been answering ", answer.status,
                          " for a long time: ", dialect_.ReadError(answer.body)));
  }
  EndCancelledIfQuiet(id.group);
  LoadIfQuiet();
}

void RemoteCore::OnScores(MemberId id, Member& member, const GenerateAnswer& answer) {
  // The server also sampled one token, the minimum of a request. It is discarded.
  if (const Status status = CheckScores(member.sent, answer); !status.ok()) {
    return FailMember(id, status.At("an answer"));
  }
  TakeScore(answer.scores, options_.rollout.max_scored, member.response);
  if (groups_.at(id.group).cancelled) {
    EndCancelledIfQuiet(id.group);
  } else if (!member.response.awaits_score) {
    Finish(id.group, id.member, *member.response.paused);
  }
  LoadIfQuiet();
  SendWaiting();
}

Status RemoteCore::TakeAnswer(Member& member, const GenerateAnswer& answer) {
  PACE_RETURN_IF_ERROR(CheckAnswer(member.sent, answer, options_.vocabulary));
  const TokenVersions read = VersionsOf(answer, options_.run, NewestOf(member.response), *version_);
  if (read.foreign) {
    Go(read.status, Loss::kForeign);
    return Status::Ok();
  }
  PACE_RETURN_IF_ERROR(read.status);
  const std::vector<PolicyVersion>& versions = read.versions;
  // Without a word of the server: one request, one version.
  if (answer.spans.empty() && !answer.tokens.empty() && Rule() != InFlightRule::kEnd) {
    return InvalidArgument("weight_versions: are missing");
  }
  TakeScore(answer.scores, options_.rollout.max_scored, member.response);
  member.Append(answer, versions);
  num_sampled_ += std::ssize(answer.tokens);
  return Status::Ok();
}

void RemoteCore::Settle(GroupId id, int64_t index, AnswerEnd end) {
  Group& group = groups_.at(id);
  if (group.cancelled) return EndCancelledIfQuiet(id);
  Member& member = group.members.at(index);
  const StopRules& stop = group.request.stop;
  const std::vector<TokenRecord>& tokens = member.response.tokens;
  std::optional<FinishReason> reason = StopReasonOf(stop, tokens, end);
  if (reason.has_value() && stop.pauses) {
    member.response.paused = reason;
    member.state = Member::State::kResting;
    return Emit(ResponsePaused{MemberId{id, index}, member.response});
  }
  if (!reason.has_value() && std::ssize(tokens) >= stop.MaxTokensOf(index)) {
    reason = FinishReason::kMaxTokens;
  }
  if (reason.has_value()) return Finish(id, index, *reason);
  // Unrequested aborts could repeat forever.
  if (!member.abort_asked && ++member.num_failures >= kMaxFailures) {
    return Go(Unavailable("the server ends requests that it was not asked to end"));
  }
  SendWaiting();
}

void RemoteCore::Finish(GroupId id, int64_t index, FinishReason reason) {
  Group& group = groups_.at(id);
  FinishedResponse finished{MemberId{id, index}, {}, reason};
  finished.response = std::move(group.members.at(index).response);
  finished.response.paused.reset();
  group.members.erase(index);
  if (group.members.empty()) groups_.erase(id);
  Emit(std::move(finished));
}

void RemoteCore::FailMember(MemberId id, const Status& error) {
  Member* const member = groups_.Find(id);
  if (++member->num_failures >= kMaxFailures) return Go(error);
  ++num_failures_;
  EndCancelledIfQuiet(id.group);
  LoadIfQuiet();
  SendWaiting();
}

void RemoteCore::Refuse(GroupId id, const Status& error) {
  const auto found = groups_.find(id);
  for (const auto& [index, member] : found->second.members) {
    if (!member.in_server()) continue;
    calls_.erase(member.call);
    std::erase_if(deferred_, [&](const auto& entry) { return entry.first.group == id; });
    actions_.emplace_back(DropCall{member.call});
  }
  if (found->second.cancelled) {
    Emit(GroupCancelled{found->second.Resumed()});
  } else {
    Emit(GroupRefused{id, error});
  }
  groups_.erase(found);
  LoadIfQuiet();
}

void RemoteCore::AbortSent(std::optional<GroupId> wanted) {
  Abort(groups_.AskToAbort(wanted));
}

void RemoteCore::Abort(const std::vector<std::string>& ids) {
  if (ids.empty()) return;
  for (HttpCall& http : dialect_.Abort(ids)) {
    Send(Control::kAbort, std::move(http), options_.control_deadline);
  }
}

void RemoteCore::EndCancelledIfQuiet(GroupId id) {
  const auto found = groups_.find(id);
  if (found == groups_.end() || !found->second.cancelled) return;
  if (found->second.num_in_server() > 0) return;
  GroupCancelled cancelled{found->second.Resumed()};
  groups_.erase(found);
  if (!cancelled.request.members.empty()) Emit(std::move(cancelled));
}

void RemoteCore::CheckInvariants() const {
  const std::map<int64_t, MemberId> sent = groups_.CheckedCalls();
  size_t num_generate = 0;
  for (const auto& [call, purpose] : calls_) {
    const auto* id = std::get_if<MemberId>(&purpose);
    if (id == nullptr) continue;
    ++num_generate;
    const auto found = sent.find(call);
    PACE_CHECK(found != sent.end() && found->second == *id, "call ", call, " is of no response");
  }
  PACE_CHECK(num_generate + deferred_.size() == sent.size(), "calls and responses disagree");
  PACE_CHECK(deferred_.empty() || phase_ == Phase::kResuming, "deferred while not resuming");
  PACE_CHECK(phase_ != Phase::kGone || (groups_.empty() && calls_.empty()), "gone and busy");
  const bool syncing = phase_ >= Phase::kChecking && phase_ <= Phase::kResuming;
  PACE_CHECK(syncing == sync_.has_value(), "a sync without a phase");
  PACE_CHECK(turn_ != Turn::kAllowed || syncing, "a turn without a sync");
}

}  // namespace pace
