#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/benches.h"
#include "bench/controller_loops.h"

namespace pace {
namespace {

BenchOptions Brief() {
  return {.repetitions = 2,
          .python = false,
          .seconds_per_measurement = 1e-4,
          .small_pool = 200,
          .large_pool = 1000};
}

// The report, as JSON; null where there is an error.
nlohmann::json Report(const BenchOptions& options) {
  BenchReport report;
  const Status status = RunControllerBench(options, report);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? nlohmann::json::parse(report.Json("controller")) : nlohmann::json();
}

Status StatusOf(const BenchOptions& options) {
  BenchReport report;
  return RunControllerBench(options, report);
}

TEST(ControllerBenchTest, ReportsEveryMeasurementWithItsLimit) {
  const nlohmann::json report = Report(Brief());
  ASSERT_TRUE(report.is_object());
  std::map<std::string, nlohmann::json> limits;
  for (const nlohmann::json& row : report["measurements"]) {
    limits[row["name"]] = row["limit"];
    EXPECT_GE(row["value"].get<double>(), 0) << row;
    EXPECT_EQ(row["repetitions"].size(), row["unit"] == "bytes/group" ? 1U : 2U) << row;
  }
  EXPECT_EQ(limits["verdict"], 300);
  EXPECT_EQ(limits["begin_step"], 50);
  EXPECT_EQ(limits["coordinator"], 500000);
  EXPECT_EQ(limits["pool_completion_at_200"], 1000000);
  EXPECT_EQ(limits["pool_cost_large_over_small"], 3);
  EXPECT_EQ(limits["coordinator_cost_large_over_small"], 3);
  EXPECT_TRUE(limits.contains("coordinator_bytes_per_running_group"));
  EXPECT_EQ(report["machine"]["build_type"].get<std::string>().empty(), false);
  EXPECT_EQ(report["peer"]["measured"], false);
}

TEST(ControllerBenchTest, MeasuresThePeerInTheSameRounds) {
  BenchOptions options = Brief();
  options.python = true;
  const nlohmann::json peer = Report(options)["peer"];
  ASSERT_EQ(peer["measured"], true) << peer;
  ASSERT_EQ(peer["measurements"].size(), 5U);
  for (const nlohmann::json& row : peer["measurements"]) {
    EXPECT_GT(row["peer"].get<double>(), 0) << row;
    EXPECT_EQ(row["peer_repetitions"].size(), 2U) << row;
  }
}

TEST(ControllerBenchTest, RefusesSettingsThatMeasureNothing) {
  BenchOptions options = Brief();
  options.repetitions = 0;
  EXPECT_EQ(StatusOf(options).message(), "repetitions = 0: must be in [1, 1000]");
  options = Brief();
  options.seconds_per_measurement = 0;
  EXPECT_FALSE(StatusOf(options).ok());
  options = Brief();
  options.large_pool = options.small_pool;
  EXPECT_FALSE(StatusOf(options).ok());
}

TEST(CoordinatorLoopTest, RunsStepsWithRejectionsAndKeepsTheInvariants) {
  CoordinatorLoop loop({});
  const int64_t before = loop.coordinator().version().step();
  const int64_t rejected_before = loop.coordinator().supply_view().num_rejected;
  for (int i = 0; i < 20; ++i) {
    loop.Run(1e-9);
    loop.coordinator().CheckInvariants();
  }
  const int64_t num_steps = loop.coordinator().version().step() - before;
  const int64_t num_rejected = loop.coordinator().supply_view().num_rejected - rejected_before;
  EXPECT_GT(num_steps, 20);
  EXPECT_GT(num_rejected, 2 * num_steps);  // of the 70 groups that a step's time brings
  EXPECT_LT(num_rejected, 14 * num_steps);
}

TEST(CoordinatorLoopTest, HoldsThePoolAtTheSizeAskedFor) {
  CoordinatorLoop loop({.pool_groups = 2000});
  for (int i = 0; i < 20; ++i) loop.Run(1e-9);
  EXPECT_NEAR(static_cast<double>(loop.coordinator().pool().occupancy()), 2000 - 32, 32);
}

TEST(GroupMixTest, LaterShiftsEveryVersionAndNoStaleness) {
  for (const GroupSummary& group : MakeGroupMix(50, PolicyVersion(100))) {
    const GroupSummary later = Later(group, 7);
    EXPECT_EQ(later.Waiting(PolicyVersion(107)), group.Waiting(PolicyVersion(100)));
    EXPECT_EQ(later.LagAt(PolicyVersion(107)), group.LagAt(PolicyVersion(100)));
    EXPECT_EQ(later.MaxMemberLag(PolicyVersion(107)), group.MaxMemberLag(PolicyVersion(100)));
    EXPECT_EQ(later.MaxTokenLag(PolicyVersion(107)), group.MaxTokenLag(PolicyVersion(100)));
    EXPECT_EQ(later.WaitingPool(PolicyVersion(107)), group.WaitingPool(PolicyVersion(100)));
  }
}

}  // namespace
}  // namespace pace
