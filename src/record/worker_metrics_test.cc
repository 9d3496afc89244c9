#include "record/worker_metrics.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(WorkerMetricsTest, AStepHasWhatEachWorkerDidInIt) {
  WorkerMetrics workers;
  workers.Read(0, 1, {.num_tokens = 100, .num_first_tokens = 4, .first_token_time = Seconds(2)});
  workers.Read(1, 1, {.num_tokens = 30, .num_syncs = 1, .sync_time = Seconds(0.25)});
  MetricsRow row;
  workers.EndStep(Seconds(10), row);
  EXPECT_EQ(Find(row, "worker/0/tokens_per_s"), 10);
  EXPECT_EQ(Find(row, "worker/0/first_token_s"), 0.5);
  EXPECT_EQ(Find(row, "worker/0/pauses"), 0);
  EXPECT_EQ(Find(row, "worker/1/tokens_per_s"), 3);
  EXPECT_EQ(Find(row, "worker/1/first_token_s"), std::nullopt);
  EXPECT_EQ(Find(row, "worker/1/pauses"), 1);
  EXPECT_EQ(Find(row, "worker/1/pause_s"), 0.25);

  workers.Read(0, 1, {.num_tokens = 140, .num_first_tokens = 4, .first_token_time = Seconds(2)});
  row.clear();
  workers.EndStep(Seconds(4), row);
  EXPECT_EQ(Find(row, "worker/0/tokens_per_s"), 10);
  EXPECT_EQ(Find(row, "worker/0/first_token_s"), std::nullopt);
  EXPECT_EQ(Find(row, "worker/1/tokens_per_s"), 0);
}

TEST(WorkerMetricsTest, AWorkerThatCameBackCountsFromZeroAgain) {
  WorkerMetrics workers;
  workers.Read(0, 3, {.num_tokens = 100, .num_failures = 1});
  workers.Read(0, 7, {.num_tokens = 20});
  workers.Read(0, 3, {.num_tokens = 500});  // of the life before: too late
  MetricsRow row;
  workers.EndStep(Seconds(1), row);
  EXPECT_EQ(Find(row, "worker/0/tokens_per_s"), 120);
  EXPECT_EQ(Find(row, "worker/0/failures"), 1);
}

TEST(WorkerMetricsTest, CountersThatFallCountNothing) {
  WorkerMetrics workers;
  workers.Read(0, 1, {.num_tokens = 100, .first_token_time = Seconds(9)});
  workers.Read(0, 1, {.num_tokens = 50, .first_token_time = Seconds(1)});
  MetricsRow row;
  workers.EndStep(Seconds(0), row);
  EXPECT_EQ(Find(row, "worker/0/tokens_per_s"), 0);
  workers.EndStep(Seconds(1), row);
}

TEST(WorkerMetricsTest, MoreWorkersThanARowHoldsAreLeftOut) {
  WorkerMetrics workers;
  workers.Read(kMaxMeteredWorkers, 1, {.num_tokens = 1});
  workers.Read(-1, 1, {.num_tokens = 1});
  MetricsRow row;
  workers.EndStep(Seconds(1), row);
  EXPECT_TRUE(row.empty());
}

}  // namespace
}  // namespace pace
