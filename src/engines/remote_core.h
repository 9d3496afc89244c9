// RemoteCore: one inference server as a worker of a run, without sockets or a clock.
//
// What the run asks for (Submit, Sync, ...) and what became of earlier calls (Answered, Failed) go
// in; TakeActions gives the calls to make and the events for the run. A driver of it
// (remote_worker.h) owns sockets, time and threads:
//
//   core.Join();
//   for (const RemoteAction& action : core.TakeActions()) Act(action);  // SendCall: make the call
//   core.Answered(call, answer);                                        // as answers come
//
// A sync interrupts what is in flight. Where prefixes are scored, requests end at the pause and are
// sent again, prompt and tokens, under the new weights; the server scores the tokens while it reads
// them. Otherwise requests wait in the server, and their answers say which weights sampled which
// token. Weights carry the label RUN:STEP. A label of another run means that two runs share the
// server: the worker is gone for good, and this run stops rather than train on foreign tokens. Any
// other label that the run did not give is that of a server that was restarted: the worker is lost.
//
// Nothing that a server says is believed unchecked: token ids, counts, versions, the reason for an
// end. An answer that breaks a rule counts as a failure of its call; two in a row, a connection
// that breaks or a deadline that passes, and the worker is gone.
//
// Thread-safety: none.
#ifndef PACE_ENGINES_REMOTE_CORE_H_
#define PACE_ENGINES_REMOTE_CORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/status.h"
#include "core/version.h"
#include "engines/dialect.h"
#include "engines/remote_group.h"
#include "engines/remote_options.h"
#include "rollout/engine_core.h"
#include "rollout/request.h"
#include "rollout/worker.h"

namespace pace {

class RemoteCore {
 public:
  // The dialect outlives the core.
  RemoteCore(const Dialect& dialect, RemoteOptions options);

  // Begins to check the server: WorkerReady or WorkerGone follows.
  void Join();

  // As of RolloutWorker. Hold ends what is in flight and keeps it, for a checkpoint; held() says
  // when that is done, Unfinished() what there is.
  void Submit(GroupRequest request);
  void Cancel(GroupId group);
  void Continue(MemberId id, std::span<const TokenId> tool_tokens);
  void FinishPaused(MemberId id);
  Status Sync(ServerWeights weights);
  void Hold();
  void Release();
  // Time has passed: asks whether the server is well, unless a call asks already.
  void LookAfter();
  // Gives the worker up.
  void Lose(const Status& error) { Go(error); }

  // What became of a call. Calls that are not known, or not any more, are ignored.
  void Answered(int64_t call, const ServerAnswer& answer);
  void Failed(int64_t call, const Status& error);
  // OpenChannel's invitation; what became of OpenChannel or SendWeights.
  void Invited(int64_t call, const ChannelInvitation& invitation);
  void Transferred(int64_t call, const Status& status);
  void AllowPause();

  std::vector<RemoteAction> TakeActions();

  bool held() const;
  std::vector<GroupRequest> Unfinished() const { return groups_.Unfinished(); }
  bool gone() const { return phase_ == Phase::kGone; }
  bool Has(GroupId group) const { return groups_.contains(group); }
  int64_t num_in_server() const { return groups_.num_in_server(); }  // requests
  const ServerFacts& facts() const { return facts_; }
  int64_t num_sampled_tokens() const { return num_sampled_; }
  int64_t num_failures() const { return num_failures_; }  // of calls, since it joined
  bool joined() const { return phase_ != Phase::kNew && phase_ != Phase::kJoining; }
  bool syncing() const { return sync_.has_value(); }
  // Aborts if states disagree.
  void CheckInvariants() const;

 private:
  // kChecking ... kResuming are the parts of a sync, in order.
  enum class Phase { kNew, kJoining, kServing, kChecking, kPausing, kLoading, kResuming, kGone };
  using Member = RemoteMember;
  using Group = RemoteGroup;
  enum class Control { kJoin, kFetch, kLabel, kPause, kLoad, kTransfer, kResume, kAbort, kHealth };
  enum class Turn { kNone, kAsked, kAllowed };
  using Purpose = std::variant<MemberId, Control>;

  void Send(Purpose purpose, HttpCall http, Seconds deadline);
  void Emit(RolloutEvent event);
  void Go(const Status& error, Loss loss = Loss::kLost);
  // The server answered a call of ours with an error of this status.
  void GoFor(const ServerAnswer& answer);

  void OnControl(Control control, const ServerAnswer& answer);
  void OnJoin(const ServerAnswer& answer);

  bool EndsRequests() const;
  InFlightRule Rule() const;
  // A group is bound to the server's version.
  bool SyncWaits() const { return version_.has_value() && groups_.IsBound(*version_); }
  // Whether the next sync interrupts responses and may not do so yet; asks.
  bool WaitsForTurn();
  void EndTurn();
  void BeginSync();
  void OnFetch(const ServerAnswer& answer);
  void AskLabel();
  void OnLabel(const ServerAnswer& answer);
  void PauseServer();
  void LoadIfQuiet();
  void OnLoad(const ServerAnswer& answer);
  // All parts from the first, or first of all the channel.
  void Load();
  void LoadNextPart();
  void EndPartIfDone();
  void ResumeServer();
  void OnResume();

  // Responses.
  bool CanSend() const;
  void SendWaiting();
  // Groups of another version than the server's.
  void RefusePassed();
  void SendMember(Group& group, int64_t index, Member& member, bool only_scores);
  void OnGenerate(MemberId id, const ServerAnswer& answer);
  // The server has too much to do: nothing is sent until time has passed.
  void OnOverload(MemberId id, const ServerAnswer& answer);
  void OnScores(MemberId id, Member& member, const GenerateAnswer& answer);
  Status TakeAnswer(Member& member, const GenerateAnswer& answer);
  // What the rules make of a response that has just grown.
  void Settle(GroupId id, int64_t index, AnswerEnd end);
  void Finish(GroupId id, int64_t index, FinishReason reason);
  void FailMember(MemberId id, const Status& error);
  void Refuse(GroupId id, const Status& error);
  void EndCancelledIfQuiet(GroupId id);
  void AbortSent(std::optional<GroupId> group);
  void Abort(const std::vector<std::string>& ids);

  const Dialect& dialect_;
  const RemoteOptions options_;
  Phase phase_ = Phase::kNew;
  bool hold_ = false;
  ServerFacts facts_;
  size_t num_joined_ = 0;                   // calls of Join that were answered
  std::optional<PolicyVersion> version_;    // that the server has
  std::optional<ServerWeights> sync_;       // under way
  std::optional<ServerWeights> next_sync_;  // to begin after it
  size_t num_loaded_ = 0;                   // parts of it that are done
  int64_t num_load_failures_ = 0;
  bool paused_ = false;  // the server has, for the sync under way
  Turn turn_ = Turn::kNone;
  std::optional<ChannelInvitation> channel_;  // that is open, or to be opened
  std::vector<UpdateCall> update_;            // the parts of the update under way
  bool asks_health_ = false;
  bool fetching_ = false;  // to be asked again whether the server has read the weights
  bool overloaded_ = false;
  int64_t num_overloads_ = 0;                                // in a row
  std::vector<std::pair<MemberId, ServerAnswer>> deferred_;  // until the server has resumed
  RemoteGroups groups_;
  std::map<int64_t, Purpose> calls_;  // in flight
  int64_t next_call_ = 1;
  int64_t next_request_ = 1;
  int64_t num_sampled_ = 0;
  int64_t num_failures_ = 0;
  std::vector<RemoteAction> actions_;
};

}  // namespace pace

#endif  // PACE_ENGINES_REMOTE_CORE_H_
