#include <gtest/gtest.h>

#include "compare/results.h"

namespace pace {
namespace {

Cell TableCell(int64_t seed) {
  Cell cell;
  cell.id = {"async", seed};
  cell.steps["time"] = {1, 2};
  cell.groups = {{"step", {0, 1, 1, 1}},       {"admitted", {1, 1, 0, 1}},
                 {"waiting", {9, 0, 2, 4}},    {"generation", {9, 0.5, 0.5, 0.5}},
                 {"score", {9, 0, 2, 4}},      {"length", {9, 10, 20, 30}},
                 {"reward", {9, 0.5, 0.25, 0}}};
  return cell;
}

class GroupTablesTest : public ::testing::Test {
 protected:
  GroupTablesTest()
      : experiment_(
            ParseExperiment("base: tiny\nseeds: 2\ngroups: true\narms: [async]", "made.yaml")
                .value()),
        table_(experiment_, {TableCell(1), TableCell(2)}) {}

  Experiment experiment_;
  CellTable table_;
};

TEST_F(GroupTablesTest, CountsTheSecondHalfOfTheSteps) {
  EXPECT_TRUE(experiment_.keep_groups);
  const std::string text = DistributionTable(table_);
  EXPECT_NE(text.find("| async | offered | 6 | 2.00 (0.00, 2.00, 4.00) |"), std::string::npos)
      << text;
  EXPECT_NE(text.find("| async | trained | 4 | 2.00 (0.00, 4.00, 4.00) |"), std::string::npos)
      << text;
  EXPECT_NE(text.find("| async | rejected | 2 | 2.00"), std::string::npos) << text;
}

TEST_F(GroupTablesTest, GoesFromLagToRewardAndLength) {
  const std::string text = LagTable(table_);
  EXPECT_NE(text.find("| async | 2; 0.50; 10.0 | – | 2; 0.25; 20.0 | – | 2; 0.00; 30.0 |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| -1.00 ± 0.00 | 1.00 ± 0.00 |"), std::string::npos) << text;
}

TEST_F(GroupTablesTest, ACellWithGroupsReadsBackAsItWasWritten) {
  const Result<Cell> read = ParseCell(CellToJson(TableCell(3)));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, TableCell(3));
  Cell uneven = TableCell(3);
  uneven.groups["reward"].pop_back();
  EXPECT_FALSE(ParseCell(CellToJson(uneven)).ok());
}

}  // namespace
}  // namespace pace
