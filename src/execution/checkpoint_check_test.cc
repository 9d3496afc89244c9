#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "execution/run_checkpoint.h"

namespace pace {
namespace {

constexpr int64_t kStep = 3;

PartialResponse Tokens(const std::vector<int64_t>& versions) {
  PartialResponse response;
  for (const int64_t version : versions) {
    response.tokens.push_back({.id = 7, .version = PolicyVersion(version)});
  }
  return response;
}

Trajectory Finished(const std::vector<int64_t>& versions, int64_t completed) {
  return Trajectory{.response = Tokens(versions), .completed = PolicyVersion(completed)};
}

Trajectory Finished(const std::vector<int64_t>& versions) {
  return Finished(versions, versions.back());
}

GroupTrajectories Group(int64_t id) {
  GroupTrajectories group;
  group.group = GroupId(id);
  group.prompt = PromptIndex(10 + id);
  group.worker = WorkerId(0);
  group.prompt_tokens = {1, 2};
  group.members.resize(2);
  return group;
}

GroupRecord Record(int64_t id, GroupState state) {
  GroupRecord record;
  record.state = state;
  record.worker = WorkerId(0);
  record.prompt = PromptIndex(10 + id);
  return record;
}

// Group 5 runs, with one of its two responses finished; group 6 waits in the pool.
RunCheckpoint Whole() {
  RunCheckpoint run;
  run.step = PolicyVersion(kStep);
  run.served = PolicyVersion(kStep);
  run.time = Seconds(9);
  run.step_clock.last = Seconds(8);
  run.coordinator.version = PolicyVersion(kStep);
  run.coordinator.checkpointing = true;
  run.coordinator.group_size = 2;
  WorkerRecord worker;
  worker.served = PolicyVersion(kStep);
  run.coordinator.workers.emplace_back(WorkerId(0), worker);
  GroupRecord running = Record(5, GroupState::kRunning);
  running.members.resize(2);
  running.members[0].num_tokens = 2;
  run.coordinator.groups.emplace_back(GroupId(5), running);
  run.coordinator.groups.emplace_back(GroupId(6), Record(6, GroupState::kPooled));
  run.groups = {Group(5), Group(6)};
  run.groups[0].members[0] = Finished({1, 2});
  run.groups[1].members = {Finished({2}), Finished({2, 3})};
  run.in_flight = {
      {.group = GroupId(5), .members = {1}, .responses = {Tokens({1, 1, 3})}},
  };
  return run;
}

TEST(CheckpointCheckTest, AWholeOneAgrees) {
  const Status status = CheckAgreement(Whole());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(CheckpointCheckTest, EveryWorkerHasItsEngine) {
  EXPECT_TRUE(CheckWorkers(Whole(), 1).ok());
  EXPECT_FALSE(CheckWorkers(Whole(), 0).ok());
  EXPECT_FALSE(CheckWorkers(Whole(), 2).ok());
  RunCheckpoint other = Whole();
  other.coordinator.workers[0].first = WorkerId(7);
  EXPECT_FALSE(CheckWorkers(other, 1).ok());
}

TEST(CheckpointCheckTest, EveryDisagreementIsNamed) {
  using Change = std::function<void(RunCheckpoint&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"step = 4", [](auto& run) { run.step = PolicyVersion(4); }},
      {"served = 4", [](auto& run) { run.served = PolicyVersion(4); }},
      {"was not saving", [](auto& run) { run.coordinator.checkpointing = false; }},
      {"was not saving", [](auto& run) { run.coordinator.training = true; }},
      {"part_since", [](auto& run) { run.step_clock.last = Seconds(10); }},
      {"worker 1",
       [](auto& run) { run.coordinator.workers.emplace_back(WorkerId(1), WorkerRecord{}); }},
      {"twice", [](auto& run) { run.groups.push_back(run.groups[0]); }},
      {"no group of the coordinator", [](auto& run) { run.groups[0].group = GroupId(9); }},
      {"1 groups of 2", [](auto& run) { run.groups.pop_back(); }},
      {"prompt", [](auto& run) { run.groups[0].prompt = PromptIndex(1); }},
      {"prompt", [](auto& run) { run.groups[0].prompt_tokens.clear(); }},
      {"worker", [](auto& run) { run.groups[0].worker = WorkerId(1); }},
      {"1 members of 2", [](auto& run) { run.groups[1].members.pop_back(); }},
      {"member 0 is not as far", [](auto& run) { run.groups[0].members[0] = {}; }},
      {"member 1 is not as far", [](auto& run) { run.groups[0].members[1] = Finished({1}); }},
      {"member 1 is not as far", [](auto& run) { run.groups[1].members[1] = {}; }},
      {"no tokens", [](auto& run) { run.groups[1].members[1] = Trajectory{}; }},
      {"completed at version 9", [](auto& run) { run.groups[1].members[1] = Finished({2, 3}, 9); }},
      {"version 3", [](auto& run) { run.groups[1].members[1] = Finished({2, 3}, 2); }},
      {"version 1 behind one of 2",
       [](auto& run) { run.groups[1].members[1] = Finished({2, 1, 3}); }},
      {"0 groups of 1", [](auto& run) { run.in_flight.clear(); }},
      {"does not run", [](auto& run) { run.in_flight[0].group = GroupId(6); }},
      {"does not run", [](auto& run) { run.in_flight.push_back(run.in_flight[0]); }},
      {"unfinished", [](auto& run) { run.in_flight[0].members[0] = 0; }},
      {"awaits a score",
       [](auto& run) {
         run.in_flight[0].responses[0] = {};
         run.in_flight[0].responses[0].awaits_score = true;
       }},
      {"version 4", [](auto& run) { run.in_flight[0].responses[0] = Tokens({4}); }},
  };
  for (const auto& [expected, change] : changes) {
    RunCheckpoint run = Whole();
    change(run);
    const Status status = CheckAgreement(run);
    EXPECT_FALSE(status.ok()) << expected;
    EXPECT_NE(status.message().find(expected), std::string::npos)
        << expected << " in " << status.message();
  }
}

}  // namespace
}  // namespace pace
