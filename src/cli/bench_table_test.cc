#include "cli/bench_table.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(BenchTableTest, ShowsEveryMeasurementWithItsLimit) {
  const Result<std::string> table = BenchTable(
      R"({"bench":"controller","settings":{},"measurements":[)"
      R"({"name":"events","value":123456,"unit":"1/s","limit":100000,"limit_kind":"at_least",)"
      R"("ok":true,"median":123456,"interquartile_range":12.5,"repetitions":[1,2]},)"
      R"({"name":"p99","unit":"us","limit":null,"ok":true,"median":0.25,)"
      R"("interquartile_range":0}],"ok":true})");
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_NE(table->find("events"), std::string::npos);
  EXPECT_NE(table->find("1.235e+05"), std::string::npos) << *table;
  EXPECT_NE(table->find(">= 1e+05"), std::string::npos);
  EXPECT_NE(table->find("0.25"), std::string::npos);
}

TEST(BenchTableTest, WhatIsNoBenchmarkIsAnError) {
  EXPECT_FALSE(BenchTable("{}").ok());
  EXPECT_FALSE(BenchTable("[").ok());
}

}  // namespace
}  // namespace pace
