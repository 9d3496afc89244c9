#include "coordinator/coordinator.h"

#include <gtest/gtest.h>

#include "control/lag_bound.h"
#include "control/supply_policies.h"
#include "coordinator/event_json.h"

namespace pace {
namespace {

// Admits or rejects everything.
class FixedAdmission final : public AdmissionPolicy {
 public:
  explicit FixedAdmission(Verdict verdict) : verdict_(verdict) {}
  StepPlan BeginStep(PolicyVersion step, const PoolView& pool) override {
    plan_ = {.step = step, .occupancy = pool.occupancy};
    return plan_;
  }
  Decision Judge(const GroupSummary& group) const override {
    Decision decision = Measure(group, plan_.step);
    decision.verdict = verdict_;
    decision.reason = verdict_ == Verdict::kAdmit ? Reason::kWithinBound : Reason::kOverBound;
    return decision;
  }
  void Observe(const GroupSummary&, const Decision&) override {}
  double Score(const GroupSummary& group) const override { return group.LagAt(plan_.step); }
  AdmissionState Save() const override { return {.step = plan_.step, .plan = plan_}; }
  Status Restore(const AdmissionState&) override { return Status::Ok(); }
  const Status* failure() const override { return failure_.ok() ? nullptr : &failure_; }
  void Fail(const std::string& why) { failure_ = Unavailable(why); }

 private:
  const Verdict verdict_;
  StepPlan plan_;
  Status failure_;
};

// A coordinator with short names for what happens to it. Groups have one member.
class CoordinatorTest : public testing::Test {
 protected:
  void Make(int64_t batch, int64_t max_outstanding, Verdict verdict = Verdict::kAdmit) {
    options_.batch = batch;
    options_.group_size = 1;
    coordinator_ =
        std::make_unique<Coordinator>(options_, std::make_unique<FixedAdmission>(verdict),
                                      std::make_unique<ThresholdSupply>(max_outstanding));
  }

  std::vector<std::string> Send(const Event& event) {
    std::vector<std::string> out;
    for (const Command& command : coordinator_->Handle(event)) {
      out.push_back(CommandToJson(command));
    }
    coordinator_->CheckInvariants();
    return out;
  }
  std::vector<std::string> Join(int64_t worker, int64_t max_groups = 100) {
    return Send(WorkerJoined{WorkerId(worker), max_groups});
  }
  std::vector<std::string> Synced(int64_t worker, int64_t version) {
    return Send(WorkerSynced{WorkerId(worker), PolicyVersion(version)});
  }
  std::vector<std::string> Finish(int64_t group, int64_t version = 0) {
    return Send(ResponseFinished{GroupId(group), 0, {{PolicyVersion(version), 4}}, {}, 10});
  }
  std::vector<std::string> Trained(int64_t step) { return Send(StepFinished{PolicyVersion(step)}); }

  static std::string Sync(int64_t worker, int64_t version) {
    return CommandToJson(SyncWeights{WorkerId(worker), PolicyVersion(version)});
  }
  static std::string Start(int64_t group, int64_t worker, int64_t prompt) {
    return CommandToJson(StartGroup{GroupId(group), WorkerId(worker), PromptIndex(prompt)});
  }
  static std::string Train(int64_t step, const std::vector<int64_t>& ids) {
    TrainBatch batch{PolicyVersion(step), {}};
    for (const int64_t id : ids) batch.groups.emplace_back(id);
    return CommandToJson(batch);
  }

  using Lines = std::vector<std::string>;
  CoordinatorOptions options_;
  std::unique_ptr<Coordinator> coordinator_;
};

// Counts what is recorded.
class CountingObserver final : public CoordinatorObserver {
 public:
  void OnStepBegan(const StepPlan&, std::optional<PolicyVersion>, const PoolState&) override {
    ++num_steps;
  }
  void OnGroupDrawn(const GroupSummary&, const Decision&, std::optional<PolicyVersion>) override {
    ++num_drawn;
  }
  int num_steps = 0, num_drawn = 0;
};

TEST_F(CoordinatorTest, NothingIsDecidedAfterItsPolicyFailed) {
  options_.batch = 1;
  options_.group_size = 1;
  auto admission = std::make_unique<FixedAdmission>(Verdict::kAdmit);
  FixedAdmission* const policy = admission.get();
  CountingObserver observer;
  Coordinator coordinator(options_, std::move(admission), std::make_unique<ThresholdSupply>(3),
                          &observer);
  EXPECT_EQ(coordinator.Handle(WorkerJoined{WorkerId(0), 9}).size(), 4U);
  const auto finish = [&](int64_t group) {
    return coordinator.Handle(ResponseFinished{GroupId(group), 0, {{PolicyVersion(0), 4}}, {}, 10});
  };
  EXPECT_EQ(finish(0).size(), 1U);
  EXPECT_TRUE(coordinator.failure().ok());
  policy->Fail("gone");
  EXPECT_TRUE(coordinator.Handle(StepFinished{PolicyVersion(0)}).empty());
  EXPECT_TRUE(finish(1).empty());
  EXPECT_EQ(coordinator.failure().message(), "gone");
  EXPECT_EQ(observer.num_steps, 1);
  EXPECT_EQ(observer.num_drawn, 1);
}

TEST_F(CoordinatorTest, SyncsAWorkerBeforeItsFirstGroup) {
  Make(1, 2);
  EXPECT_EQ(Join(7), (Lines{Sync(7, 0), Start(0, 7, 0), Start(1, 7, 1)}));
}

TEST_F(CoordinatorTest, SpreadsGroupsOverTheLeastLoadedWorkers) {
  Make(2, 4);
  EXPECT_EQ(Join(1, 1), (Lines{Sync(1, 0), Start(0, 1, 0)}));
  EXPECT_EQ(Join(2, 9), (Lines{Sync(2, 0), Start(1, 2, 1), Start(2, 2, 2), Start(3, 2, 3)}));
}

TEST_F(CoordinatorTest, TrainsTheBatchSortedById) {
  Make(2, 4);
  Join(0);
  EXPECT_EQ(Finish(3), Lines{});
  EXPECT_EQ(Finish(1), (Lines{Train(0, {1, 3})}));
}

TEST_F(CoordinatorTest, CreditReturnsOnlyAfterEveryWorkerSynced) {
  Make(1, 1);
  EXPECT_EQ(Join(0), (Lines{Sync(0, 0), Start(0, 0, 0)}));
  Synced(0, 0);
  Join(1);
  Synced(1, 0);
  Finish(0);
  EXPECT_EQ(Trained(0), (Lines{Sync(0, 1), Sync(1, 1)}));
  EXPECT_EQ(Synced(0, 1), Lines{});
  EXPECT_EQ(Synced(1, 1), (Lines{Start(1, 0, 1)}));
}

TEST_F(CoordinatorTest, CreditReturnsWhenTheLastUnsyncedWorkerIsLost) {
  Make(1, 1);
  Join(0);
  Synced(0, 0);
  Join(1);
  Synced(1, 0);
  Finish(0);
  Trained(0);
  Synced(0, 1);
  EXPECT_EQ(Send(WorkerLost{WorkerId(1)}), (Lines{Start(1, 0, 1)}));
}

TEST_F(CoordinatorTest, ASlowWorkerSkipsVersionsItMissed) {
  Make(1, 10);
  Join(0);
  Finish(0);
  Trained(0);
  Finish(1);
  Trained(1);
  EXPECT_EQ(Synced(0, 0).front(), Sync(0, 2));
}

TEST_F(CoordinatorTest, SyncIntervalHoldsWeightsBack) {
  options_.sync_interval = 2;
  Make(1, 2);
  Join(0);
  Synced(0, 0);
  Finish(0);
  EXPECT_EQ(Trained(0), Lines{});  // version 1 is not published
  Finish(1);
  EXPECT_EQ(Trained(1), (Lines{Sync(0, 2)}));
  EXPECT_EQ(Synced(0, 2), (Lines{Start(2, 0, 2), Start(3, 0, 3)}));
}

TEST_F(CoordinatorTest, RejectionReturnsTheCreditAtOnce) {
  Make(1, 2, Verdict::kReject);
  Join(0);
  Synced(0, 0);
  // Make group 0 stale: train step 0 first on a group the guard admits.
  Finish(1);
  Trained(0);
  EXPECT_EQ(coordinator_->version(), PolicyVersion(1));
  Synced(0, 1);
  const Lines lines = Finish(0);
  ASSERT_GE(lines.size(), 2U);
  EXPECT_EQ(lines[0], CommandToJson(DropGroup{GroupId(0), Reason::kOverBound}));
  EXPECT_EQ(lines[1], Start(3, 0, 3));
}

TEST_F(CoordinatorTest, AGroupAsFreshAsCanBeIsAdmittedAgainstThePolicy) {
  Make(1, 2, Verdict::kReject);
  Join(0);
  EXPECT_EQ(Finish(0), (Lines{Train(0, {0})}));
  EXPECT_EQ(coordinator_->num_guarded(), 1);
}

TEST_F(CoordinatorTest, TheBackstopEndsAStepThatRejectsTooMuch) {
  Make(1, 60, Verdict::kReject);
  Join(0);
  Synced(0, 0);
  Finish(0);
  for (int64_t group = 1; group <= 12; ++group) Finish(group);  // wait in the pool
  Trained(0);                                                   // step 1: all of them are stale now
  Synced(0, 1);
  EXPECT_TRUE(coordinator_->training());
  EXPECT_EQ(coordinator_->num_rejected_in_step(), 10);  // ten batches of one
  EXPECT_EQ(coordinator_->num_guarded(), 1);
}

TEST_F(CoordinatorTest, ALostWorkersPromptsComeBack) {
  Make(1, 2);
  Join(0);
  Send(WorkerLost{WorkerId(0)});
  EXPECT_EQ(Join(1), (Lines{Sync(1, 0), Start(2, 1, 0), Start(3, 1, 1)}));
}

TEST_F(CoordinatorTest, APromptThatFailsTooOftenIsDropped) {
  options_.max_attempts = 2;
  Make(1, 1);
  Join(0);
  EXPECT_EQ(coordinator_->AttemptOf(GroupId(0)), 1);
  EXPECT_EQ(Send(GroupFailed{GroupId(0)}), (Lines{Start(1, 0, 0)}));
  EXPECT_EQ(coordinator_->AttemptOf(GroupId(1)), 2);
  EXPECT_EQ(Send(GroupFailed{GroupId(1)}), (Lines{Start(2, 0, 1)}));
  EXPECT_EQ(coordinator_->AttemptOf(GroupId(2)), 1);
}

TEST_F(CoordinatorTest, LateEventsOfAnEndedGroupAreIgnored) {
  Make(1, 1);
  Join(0);
  Send(GroupFailed{GroupId(0)});
  EXPECT_EQ(Finish(0), Lines{});
  EXPECT_EQ(Send(GroupFailed{GroupId(0)}), Lines{});
}

TEST_F(CoordinatorTest, ACheckpointIsABarrier) {
  options_.checkpoint_every = 1;
  Make(1, 3);
  Join(0);
  Synced(0, 0);
  Finish(0);
  EXPECT_EQ(Trained(0), (Lines{Sync(0, 1), CommandToJson(Checkpoint{PolicyVersion(1)})}));
  EXPECT_EQ(Synced(0, 1), Lines{});
  EXPECT_EQ(Finish(1), Lines{});
  EXPECT_EQ(Send(CheckpointFinished{PolicyVersion(1)}), (Lines{Train(1, {1}), Start(3, 0, 3)}));
}

TEST_F(CoordinatorTest, WorkersThatAreBehindCatchUpDuringACheckpoint) {
  options_.checkpoint_every = 2;
  Make(1, 3);
  Join(0);
  Synced(0, 0);
  Finish(0);
  Finish(1);
  Trained(0);  // its sync to version 1 takes long
  EXPECT_EQ(Trained(1), (Lines{CommandToJson(Checkpoint{PolicyVersion(2)})}));
  EXPECT_EQ(Synced(0, 1), (Lines{Sync(0, 2)}));
  EXPECT_EQ(Synced(0, 2), Lines{});
}

TEST_F(CoordinatorTest, ARunThatWasStoppedGoesOn) {
  options_.checkpoint_every = 100;
  Make(1, 2);
  Join(0);
  Synced(0, 0);
  Finish(0);
  Send(StopRequested{});
  EXPECT_EQ(Trained(0), (Lines{Sync(0, 1), CommandToJson(Checkpoint{PolicyVersion(1)})}));
  Synced(0, 1);
  EXPECT_EQ(Finish(1), Lines{});
  EXPECT_EQ(Send(RunResumed{}), Lines{});
  EXPECT_EQ(Send(CheckpointFinished{PolicyVersion(1)}).front(), Train(1, {1}));
}

TEST_F(CoordinatorTest, AGroupThatIsNotToBeTriedAgainGivesItsCreditToAnotherPrompt) {
  options_.requeue = Requeue::kAll;
  Make(1, 1);
  Join(0);
  Synced(0, 0);
  EXPECT_EQ(Send(GroupFailed{GroupId(0), false}), (Lines{Start(1, 0, 1)}));
}

TEST_F(CoordinatorTest, StopFinishesTheUpdateAndSaves) {
  options_.checkpoint_every = 100;
  Make(1, 2);
  Join(0);
  Finish(0);
  EXPECT_EQ(Send(StopRequested{}), Lines{});
  EXPECT_EQ(Trained(0), (Lines{CommandToJson(Checkpoint{PolicyVersion(1)})}));
  EXPECT_EQ(Send(CheckpointFinished{PolicyVersion(1)}), (Lines{CommandToJson(Stop{})}));
  EXPECT_EQ(Finish(1), Lines{});
}

TEST_F(CoordinatorTest, AStopIsSavedBeforeTheEvaluationUnderWayEnds) {
  options_.save_at_end = true;
  options_.evaluate_every = 1;
  Make(1, 2);
  Join(0);
  EXPECT_EQ(Send(StopRequested{}), (Lines{CommandToJson(Checkpoint{PolicyVersion(0)})}));
  EXPECT_EQ(Send(CheckpointFinished{PolicyVersion(0)}), Lines{});
  EXPECT_EQ(Send(EvaluationFinished{PolicyVersion(0)}), (Lines{CommandToJson(Stop{})}));
}

TEST_F(CoordinatorTest, TheLastStepIsSavedWhereTheDriverAsksForIt) {
  options_.save_at_end = true;
  options_.num_steps = 1;
  Make(1, 1);
  Join(0);
  Finish(0);
  EXPECT_EQ(Trained(0).back(), CommandToJson(Checkpoint{PolicyVersion(1)}));
  EXPECT_EQ(Send(CheckpointFinished{PolicyVersion(1)}).back(), CommandToJson(Stop{}));
}

TEST_F(CoordinatorTest, ARecordedRunIsSavedAndEvaluatedWhereItWas) {
  options_.num_steps = 100;
  options_.checkpoint_every = 3;
  options_.evaluate_every = 1;
  options_.saved = {.last = 4, .versions = {1, 4}};
  options_.evaluated = {.last = 2, .versions = {2}};
  std::vector<int64_t> saved, evaluated;
  for (int64_t step = 0; step <= 6; ++step) {
    if (options_.SavesAt(PolicyVersion(step))) saved.push_back(step);
    if (options_.EvaluatesAt(PolicyVersion(step))) evaluated.push_back(step);
  }
  EXPECT_EQ(saved, (std::vector<int64_t>{1, 4, 6}));
  EXPECT_EQ(evaluated, (std::vector<int64_t>{2, 3, 4, 5, 6}));
}

TEST_F(CoordinatorTest, StopsAfterTheLastStepOnceEvaluationsAreDone) {
  options_.num_steps = 1;
  options_.evaluate_every = 1;
  Make(1, 1);
  EXPECT_EQ(Join(0).front(), CommandToJson(Evaluate{PolicyVersion(0)}));
  Finish(0);
  Trained(0);
  EXPECT_EQ(Send(EvaluationFinished{PolicyVersion(1)}), Lines{});
  EXPECT_EQ(Send(EvaluationFinished{PolicyVersion(0)}), (Lines{CommandToJson(Stop{})}));
}

TEST_F(CoordinatorTest, TheStartIsNotEvaluatedWhereTheOptionsSaySo) {
  options_.num_steps = 1;
  options_.evaluate_every = 1;
  options_.evaluate_at_start = false;
  Make(1, 1);
  EXPECT_NE(Join(0).front(), CommandToJson(Evaluate{PolicyVersion(0)}));
  EXPECT_FALSE(options_.EvaluatesAt(PolicyVersion(0)));
  EXPECT_TRUE(options_.EvaluatesAt(PolicyVersion(1)));
  // A replay follows the record.
  options_.evaluated = {.last = 0, .versions = {0}};
  EXPECT_TRUE(options_.EvaluatesAt(PolicyVersion(0)));
}

TEST_F(CoordinatorTest, SaysWhatItWaitsFor) {
  Make(2, 4);
  EXPECT_EQ(coordinator_->WhyWaiting(),
            "step 0 has 0 of 2 groups; 0 groups run on 0 workers (no worker is live: start one)");
  Join(0);
  Finish(0);
  EXPECT_EQ(coordinator_->WhyWaiting(),
            "step 0 has 1 of 2 groups; 3 groups run on 1 workers, 1 of them syncing weights");
}

TEST_F(CoordinatorTest, NamesWhatIsWrongWithAnEvent) {
  Make(1, 1);
  Join(0);
  const auto why = [this](const Event& event) { return coordinator_->Validate(event).message(); };
  EXPECT_EQ(why(WorkerJoined{WorkerId(0), 1}), "worker = 0: has joined already");
  EXPECT_EQ(why(WorkerLost{WorkerId(5)}), "worker = 5: is not live");
  EXPECT_EQ(why(StepFinished{PolicyVersion(0)}), "step = 0: is not in training");
  EXPECT_EQ(why(ResponseFinished{GroupId(4), 0, {{PolicyVersion(0), 1}}, {}, 0}),
            "group = 4: was never started");
  EXPECT_EQ(why(ResponseFinished{GroupId(0), 0, {{PolicyVersion(3), 1}}, {}, 0}),
            "segments: version 3: must not fall, nor pass 0, the trainer's");
  EXPECT_EQ(why(ResponseFinished{GroupId(0), 1, {{PolicyVersion(0), 1}}, {}, 0}),
            "member = 1: must be in [0, 1)");
}

TEST_F(CoordinatorTest, OwesWhatWasAskedAndNotAnswered) {
  Make(2, 3);
  Join(0);
  Finish(0);
  Lines owed;
  for (const Command& command : coordinator_->Owed()) owed.push_back(CommandToJson(command));
  EXPECT_EQ(owed, (Lines{Sync(0, 0), Start(1, 0, 1), Start(2, 0, 2)}));
}

TEST_F(CoordinatorTest, AGreedyMemberHasNoPartInItsGroupsStaleness) {
  struct Watch final : CoordinatorObserver {
    GroupSummary seen;
    void OnGroupAssembled(const GroupSummary& group) override { seen = group; }
  } watch;
  const CoordinatorOptions options{
      .batch = 1, .group_size = 3, .num_steps = 10, .greedy_last = true};
  Coordinator coordinator(options, std::make_unique<FixedAdmission>(Verdict::kAdmit),
                          std::make_unique<ThresholdSupply>(2), &watch);
  coordinator.Handle(WorkerJoined{WorkerId(0), 4});
  const std::optional<double> scores[] = {0.25, 0.75, 9.0};
  for (int64_t member = 0; member < 3; ++member) {
    coordinator.Handle(ResponseFinished{
        GroupId(0), member, {{PolicyVersion(0), 1}}, scores[static_cast<size_t>(member)], 0});
  }
  EXPECT_EQ(watch.seen.num_members, 2);
  EXPECT_EQ(watch.seen.prefix_score, 0.5);
  coordinator.CheckInvariants();
}

TEST_F(CoordinatorTest, AnObserverHearsOfGroupsThatLeaveThePoolUndrawn) {
  struct Watch final : CoordinatorObserver {
    std::vector<int64_t> evicted, bytes;
    void OnStepBegan(const StepPlan&, std::optional<PolicyVersion>,
                     const PoolState& pool) override {
      bytes.push_back(pool.num_bytes());
    }
    void OnGroupEvicted(GroupId group) override { evicted.push_back(group.value()); }
  } watch;
  Coordinator coordinator({.batch = 1, .group_size = 1, .num_steps = 10, .pool = {.max_groups = 2}},
                          std::make_unique<FixedAdmission>(Verdict::kAdmit),
                          std::make_unique<ThresholdSupply>(6), &watch);
  coordinator.Handle(WorkerJoined{WorkerId(0), 6});
  for (int64_t group = 0; group < 4; ++group) {
    coordinator.Handle(ResponseFinished{GroupId(group), 0, {{PolicyVersion(0), 3}}, {}, 8});
  }
  // The first is in training; the pool holds two of the other three.
  EXPECT_EQ(watch.evicted.size(), 1U);
  EXPECT_EQ(watch.bytes, (std::vector<int64_t>{8}));
  EXPECT_EQ(coordinator.pool().num_tokens(), 6);
}

TEST_F(CoordinatorTest, CompletionVersionsFollowTheOrderOfEvents) {
  options_.group_size = 2;
  struct Watch final : CoordinatorObserver {
    std::vector<int64_t> completed;
    void OnGroupAssembled(const GroupSummary& group) override {
      completed.push_back(group.completed_sum);
    }
  } watch;
  Coordinator coordinator({.batch = 1, .group_size = 2, .num_steps = 10},
                          std::make_unique<FixedAdmission>(Verdict::kAdmit),
                          std::make_unique<ThresholdSupply>(2), &watch);
  coordinator.Handle(WorkerJoined{WorkerId(0), 4});
  const auto finish = [&](int64_t group, int64_t member) {
    coordinator.Handle(ResponseFinished{GroupId(group), member, {{PolicyVersion(0), 1}}, {}, 0});
  };
  finish(1, 0);  // under version 0
  finish(0, 0);
  finish(0, 1);
  coordinator.Handle(StepFinished{PolicyVersion(0)});
  finish(1, 1);  // under version 1
  EXPECT_EQ(watch.completed, (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace pace
