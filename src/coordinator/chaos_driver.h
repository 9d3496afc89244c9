// ChaosDriver: a driver for tests that delivers events in random legal order.
//
// It keeps the contract of a driver (the commands to one worker are carried out in order) and
// exercises everything else that may happen: workers join and vanish, groups fail, syncs take
// long, responses finish in any order and may be reported late. After every event it checks
// the coordinator's invariants and compares the commands with its own records.
#ifndef PACE_COORDINATOR_CHAOS_DRIVER_H_
#define PACE_COORDINATOR_CHAOS_DRIVER_H_

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/test_groups.h"
#include "coordinator/coordinator.h"

namespace pace {

struct ChaosOptions {
  CoordinatorOptions coordinator;
  int64_t max_workers = 4;
  bool failures = true;          // workers vanish, groups fail
  bool check_on_policy = false;  // every trained token must come from the step's version
};

class ChaosDriver {
 public:
  ChaosDriver(const ChaosOptions& options, uint64_t seed, std::unique_ptr<Coordinator> coordinator);

  // Delivers one random event; returns false when none is possible.
  bool DeliverRandom();
  // Delivers the oldest outstanding event, never a failure: the assumption of the liveness
  // proof. A worker joins if none is live.
  bool DeliverFair();
  void Deliver(const Event& event);

  // From here on a restored copy handles the same events and must return the same commands.
  void Shadow(std::unique_ptr<Coordinator> copy);

  Coordinator& coordinator() { return *coordinator_; }
  int64_t num_events() const { return num_events_; }
  int64_t num_steps_trained() const { return num_steps_trained_; }
  // The first disagreement seen, if any.
  const std::string& failure() const { return failure_; }

 private:
  struct Member {
    VersionRuns runs;
    bool finished = false;
  };
  struct Worker {
    std::deque<Command> queue;  // sent, not yet carried out
    PolicyVersion version;
    bool synced = false;
    std::map<GroupId, std::vector<Member>> running;
  };

  void Execute(const Command& command);
  void ExecuteTyped(const StartGroup& command);
  void ExecuteTyped(const AbandonGroup& command);
  void ExecuteTyped(const SyncWeights& command);
  void ExecuteTyped(const TrainBatch& command);
  void ExecuteTyped(const DropGroup& command);
  void ExecuteTyped(const Evaluate& command) { evaluating_.push_back(command.version); }
  void ExecuteTyped(const Checkpoint& command) { checkpoint_ = command.step; }
  void ExecuteTyped(const Stop&) { stopped_ = true; }

  // Carries out the head of a worker's queue; delivers WorkerSynced for a sync.
  void Work(WorkerId worker);
  void FinishResponse(WorkerId worker, GroupId group, size_t member);
  // The first unfinished member of a worker's running groups, or a random one.
  bool FinishSome(WorkerId worker, bool random);
  void Join();
  void Fail(const std::string& what);

  const ChaosOptions options_;
  TestRandom random_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Coordinator> shadow_;
  std::map<WorkerId, Worker> workers_;
  int64_t next_worker_ = 0;
  std::optional<TrainBatch> training_;
  std::optional<PolicyVersion> checkpoint_;
  std::vector<PolicyVersion> evaluating_;
  bool stopped_ = false;

  // The driver's own records.
  std::set<GroupId> started_, completed_, ended_;
  std::map<GroupId, PolicyVersion> oldest_token_;
  int64_t num_events_ = 0;
  int64_t num_steps_trained_ = 0;
  std::string failure_;
};

}  // namespace pace

#endif  // PACE_COORDINATOR_CHAOS_DRIVER_H_
