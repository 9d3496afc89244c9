#include "bench/bench_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/benches.h"
#include "bench/peer.h"

namespace pace {
namespace {

TEST(BenchReportTest, TheTableShowsEveryMeasurementWithItsLimit) {
  BenchReport report;
  report.measurements = {Rate("events", "1/s", 100000), Known("p99", "us", 0.25),
                         Known("memory", "MB", 3, 2)};
  report.measurements[0].repetitions = {123450, 123462};
  const std::string table = report.Table();
  EXPECT_NE(table.find("events"), std::string::npos);
  EXPECT_NE(table.find("1.235e+05"), std::string::npos) << table;
  EXPECT_NE(table.find(">= 1e+05"), std::string::npos);
  EXPECT_NE(table.find("0.25"), std::string::npos);
  EXPECT_NE(table.find("FAILS"), std::string::npos);
}

TEST(BenchReportTest, TheObjectHoldsSettingsMeasurementsAndFurtherKeys) {
  BenchReport report;
  report.measurements = {Known("memory", "MB", 3, 2)};
  report.settings().Put("threads", 1);
  report.settings().Put("window", 512);
  report.more().Put("peer", "none");
  report.PutProfiles({{.shape = "tiny", .step_seconds = 2, .parts = {{"all", 2, 1}}}});
  const auto json = nlohmann::json::parse(report.Json("memory"));
  EXPECT_EQ(json["bench"], "memory");
  EXPECT_EQ(json["settings"], (nlohmann::json{{"threads", 1}, {"window", 512}}));
  EXPECT_EQ(json["measurements"][0]["limit_kind"], "at_most");
  EXPECT_EQ(json["peer"], "none");
  EXPECT_EQ(json["parts"][0]["parts"][0]["limit_s"], 1);
  EXPECT_EQ(json["ok"], false);
}

TEST(BenchReportTest, WithoutMeasurementsAndKeysItIsAnObjectAllTheSame) {
  const auto json = nlohmann::json::parse(BenchReport().Json("nothing"));
  EXPECT_TRUE(json["settings"].empty());
  EXPECT_EQ(json["ok"], true);
}

TEST(BenchesTest, AreFoundByTheirNamesWhichAreSorted) {
  std::string before;
  for (const Bench& benchmark : Benches()) {
    EXPECT_LT(before, benchmark.name);
    EXPECT_EQ(FindBench(benchmark.name), &benchmark);
    EXPECT_TRUE(benchmark.Takes("--repetitions"));
    before = benchmark.name;
  }
  EXPECT_EQ(FindBench("nothing"), nullptr);
  EXPECT_TRUE(FindBench("decode")->Takes("--batch"));
  EXPECT_FALSE(FindBench("sandbox")->Takes("--no-python"));
}

TEST(PeerAnswerTest, HoldsNumbersTextsAndRows) {
  const Result<PeerAnswer> answer = PeerAnswer::Parse(
      "x.py", R"({"seconds": 2.5, "version": "one", "ids": [[1, 2], [3]]})", {"seconds"});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->numbers.at("seconds"), 2.5);
  EXPECT_EQ(answer->texts.at("version"), "one");
  EXPECT_EQ(answer->rows, (std::vector<std::vector<double>>{{1, 2}, {3}}));
  EXPECT_EQ(PeerAnswer::Parse("x.py", "{\"shares\": [0.5, 0]}")->rows,
            (std::vector<std::vector<double>>{{0.5, 0}}));
}

TEST(PeerAnswerTest, WhatIsMissingOrNoObjectIsAnErrorThatNamesTheScript) {
  EXPECT_EQ(PeerAnswer::Parse("x.py", "{}", {"seconds"}).status().message(),
            "x.py: an answer without seconds");
  const Status broken = PeerAnswer::Parse("x.py", "Traceback").status();
  EXPECT_TRUE(broken.message().starts_with("x.py")) << broken.message();
}

}  // namespace
}  // namespace pace
