#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/benches.h"

namespace pace {
namespace {

TEST(CheckpointBenchTest, ReportsRatesMemoryAndBytes) {
  BenchReport measured;
  const Status status =
      RunCheckpointBench({.repetitions = 2, .num_responses = 40, .num_tokens = 100}, measured);
  ASSERT_TRUE(status.ok()) << status.message();
  const nlohmann::json report = nlohmann::json::parse(measured.Json("checkpoint"));
  std::map<std::string, nlohmann::json> limits;
  for (const nlohmann::json& row : report["measurements"]) {
    limits[row["name"]] = row["limit"];
    EXPECT_EQ(row["repetitions"].size(), 2U) << row;
  }
  EXPECT_EQ(limits["write"], 200);
  EXPECT_EQ(limits["read"], 200);
  EXPECT_TRUE(limits["plain_write"].is_null());
  EXPECT_TRUE(limits.contains("read_over_plain"));
  EXPECT_LT(report["bytes_per_token"].get<double>(), 14);
}

TEST(CheckpointBenchTest, RefusesSettingsThatMeasureNothing) {
  BenchReport report;
  EXPECT_FALSE(RunCheckpointBench({.num_tokens = 0}, report).ok());
  EXPECT_FALSE(RunCheckpointBench({.num_responses = 1, .folder = "/nowhere"}, report).ok());
}

}  // namespace
}  // namespace pace
