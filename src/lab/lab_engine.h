// LabEngine: a real rollout engine whose passes take virtual time.
//
// A forward pass is computed when it begins and counts when it ends: its samples are
// reported then, and commands that arrived meanwhile take effect then, at a token
// boundary. The cost model gives its duration. A sync pauses the engine for the transfer.
//
// Thread-safety: none.
#ifndef PACE_LAB_LAB_ENGINE_H_
#define PACE_LAB_LAB_ENGINE_H_

#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "cluster/cost_model.h"
#include "core/clock.h"
#include "core/status.h"
#include "execution/response_file.h"
#include "rollout/engine_core.h"

namespace pace {

struct LabReport {
  std::vector<FinishedResponse> finished = {};
  std::vector<MemberId> paused = {};
  std::optional<PolicyVersion> synced = std::nullopt;
};

struct LabEngineOptions {
  int64_t max_batch = 1;         // responses that decode at once
  bool charge_rescoring = true;  // whether prefix scores take time
};

class LabEngine {
 public:
  // Costs outlive the engine. The core has no weights yet, or was restored.
  LabEngine(const CostModel& costs, const LabEngineOptions& options,
            std::unique_ptr<EngineCore> core);

  void Submit(Seconds now, GroupRequest request);
  void Sync(Seconds now, PolicyVersion version, std::shared_ptr<const DecoderWeights> weights);
  // The unfinished members of a group, as far as they got.
  GroupInFlight Unfinished(GroupId group, int64_t num_members) const;
  void Cancel(Seconds now, GroupId group);
  // A paused response resumes with these tool tokens at the next token boundary.
  void Continue(Seconds now, MemberId id, std::vector<TokenId> given);
  // No further pass begins until Resume.
  void Pause() { paused_ = true; }
  void Resume(Seconds now);

  // When Act is due; none while the engine is idle.
  std::optional<Seconds> next_time() const { return next_time_; }
  // Ends the pass or transfer that is due and begins the next.
  Result<LabReport> Act();

  // Idle, and no command waits.
  bool at_rest() const { return !next_time_.has_value(); }
  bool busy() const { return core_->busy(); }
  EngineCore& core() { return *core_; }
  const EngineCore& core() const { return *core_; }
  Seconds rescore_time() const { return rescore_time_; }
  Seconds busy_time() const { return busy_time_; }  // in passes, those under way included
  int64_t num_tokens() const { return num_tokens_; }

 private:
  struct SyncCommand {
    PolicyVersion version;
    std::shared_ptr<const DecoderWeights> weights;
  };
  struct CancelCommand {
    GroupId group;
  };
  struct ContinueCommand {
    MemberId id;
    std::vector<TokenId> given;
  };
  using Command = std::variant<GroupRequest, SyncCommand, CancelCommand, ContinueCommand>;

  void Add(Seconds now, Command command);
  // Executes commands until one takes time.
  Status TakeCommands(LabReport& report);
  Status BeginPass();
  Seconds CostOf(const StepReport& pass);

  const CostModel& costs_;
  const LabEngineOptions options_;
  std::unique_ptr<EngineCore> core_;
  std::deque<Command> commands_;
  std::optional<SyncCommand> transferring_;
  std::optional<StepReport> pass_;  // under way
  std::optional<Seconds> next_time_;
  bool paused_ = false;
  Seconds rescore_time_{0};
  Seconds busy_time_{0};
  int64_t num_tokens_ = 0;
};

}  // namespace pace

#endif  // PACE_LAB_LAB_ENGINE_H_
