#include "runtime/remote_evaluation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/server_fleet.h"

namespace pace {
namespace {

// Keeps what it is asked.
class AskedWorker final : public RolloutWorker {
 public:
  void Submit(GroupRequest request) override { requests.push_back(std::move(request)); }
  void Cancel(GroupId group) override { cancelled.push_back(group); }
  std::optional<GroupRequest> Take(GroupId) override { return std::nullopt; }
  void Continue(MemberId, std::vector<TokenId>) override {}
  void FinishPaused(MemberId) override {}
  Status Sync(const PublishedWeights&) override { return Status::Ok(); }
  std::vector<RolloutEvent> Wait(std::chrono::steady_clock::time_point) override { return {}; }
  std::vector<GroupRequest> Pause() override { return {}; }
  void Resume() override {}
  RolloutStats stats() const override { return {}; }

  std::vector<GroupRequest> requests;
  std::vector<GroupId> cancelled;
};

class RemoteEvaluationTest : public testing::Test {
 protected:
  // A worker that was told to serve `version`.
  AskedWorker& Join(int64_t version) {
    auto worker = std::make_unique<AskedWorker>();
    AskedWorker& joined = *worker;
    slots_.Add({.worker = std::move(worker), .given = PolicyVersion(version), .joined = true});
    return joined;
  }
  static GroupRequest Request(int64_t group, int64_t num_responses) {
    GroupRequest request;
    request.group = GroupId(group);
    request.num_responses = num_responses;
    return request;
  }
  bool Finish(GroupId group, int64_t member) {
    return evaluations_.Take(FinishedResponse{.id = {group, member}});
  }

  WorkerSlots slots_;
  RemoteEvaluations evaluations_{slots_};
};

TEST_F(RemoteEvaluationTest, GroupsGoInTurnToWorkersThatHaveTheVersion) {
  AskedWorker& old = Join(2);
  AskedWorker& first = Join(3);
  AskedWorker& second = Join(3);
  const auto evaluation = evaluations_.Start(PolicyVersion(3));
  for (int64_t group = 0; group < 4; ++group) evaluation->Submit(Request(group, 2));
  evaluations_.Assign(PolicyVersion(3));
  EXPECT_TRUE(old.requests.empty());
  ASSERT_EQ(first.requests.size(), 2U);
  ASSERT_EQ(second.requests.size(), 2U);
  EXPECT_EQ(first.requests[0].only_version, PolicyVersion(3));

  // Responses carry the ids under which they were asked for, each once.
  const GroupId group = first.requests[0].group;
  EXPECT_TRUE(Finish(group, 1));
  EXPECT_TRUE(Finish(group, 1));
  EXPECT_FALSE(Finish(GroupId(0), 1));  // a group of training
  const Result<std::vector<FinishedResponse>> done = evaluation->Wait();
  ASSERT_TRUE(done.ok());
  ASSERT_EQ(done->size(), 1U);
  EXPECT_EQ((*done)[0].id.group, GroupId(0));
  EXPECT_EQ((*done)[0].id.member, 1);
}

TEST_F(RemoteEvaluationTest, WhatALostWorkerLeftGoesToAnother) {
  AskedWorker& first = Join(3);
  AskedWorker& second = Join(3);
  const auto evaluation = evaluations_.Start(PolicyVersion(3));
  evaluation->Submit(Request(0, 3));
  evaluations_.Assign(PolicyVersion(3));
  ASSERT_EQ(first.requests.size(), 1U);
  EXPECT_TRUE(Finish(first.requests[0].group, 1));
  (void)slots_.Lose(0);
  evaluations_.Lose(0);
  evaluations_.Assign(PolicyVersion(4));
  ASSERT_EQ(second.requests.size(), 1U);
  EXPECT_EQ(second.requests[0].members, (std::vector<int64_t>{0, 2}));
}

TEST_F(RemoteEvaluationTest, FailsWhenNoWorkerCanHaveTheVersionAnyMore) {
  AskedWorker& only = Join(2);
  const auto evaluation = evaluations_.Start(PolicyVersion(3));
  evaluation->Submit(Request(0, 1));
  evaluations_.Assign(PolicyVersion(3));  // it may still be told
  EXPECT_TRUE(only.requests.empty());
  evaluations_.Assign(PolicyVersion(4));
  const Status status = evaluation->Wait().status();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(evaluation->abandoned());
}

TEST_F(RemoteEvaluationTest, ARefusalEndsItAndCancelsTheRest) {
  AskedWorker& worker = Join(3);
  const auto evaluation = evaluations_.Start(PolicyVersion(3));
  evaluation->Submit(Request(0, 1));
  evaluation->Submit(Request(1, 1));
  evaluations_.Assign(PolicyVersion(3));
  ASSERT_EQ(worker.requests.size(), 2U);
  EXPECT_TRUE(
      evaluations_.Take(GroupRefused{worker.requests[1].group, InvalidArgument("too long")}));
  EXPECT_EQ(evaluation->Wait().status().message(), "too long");
  EXPECT_EQ(worker.cancelled.size(), 2U);
}

TEST_F(RemoteEvaluationTest, TheEndOfTheRunAbandonsIt) {
  std::shared_ptr<RemoteEvaluation> evaluation;
  {
    RemoteEvaluations evaluations(slots_);
    evaluation = evaluations.Start(PolicyVersion(3));
  }
  EXPECT_TRUE(evaluation->abandoned());
  EXPECT_FALSE(evaluation->Wait().ok());
}

TEST(CallAgainTest, APauseGrowsUntilTheServerServes) {
  CallAgain again;
  const auto lose = [&] { return again.PauseAfterLoss(/*was_ready=*/true, false).count(); };
  std::vector<int64_t> pauses;
  for (int i = 0; i < 8; ++i) pauses.push_back(lose());
  EXPECT_EQ(pauses, (std::vector<int64_t>{0, 1, 2, 4, 8, 16, 30, 30}));
  again.Served();
  EXPECT_EQ(lose(), 0);
  EXPECT_EQ(lose(), 1);
  EXPECT_EQ(again.PauseAfterLoss(/*was_ready=*/false, false).count(), 2);
  EXPECT_EQ(again.PauseAfterLoss(/*was_ready=*/false, true).count(), 30);
}

}  // namespace
}  // namespace pace
