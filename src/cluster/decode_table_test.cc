#include "cluster/decode_table.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

constexpr char kTable[] = R"({"batch": 1, "context": 100, "seconds": 0.010}
{"batch": 1, "context": 1100, "seconds": 0.020}

{"batch": 9, "context": 100, "seconds": 0.018}
{"batch": 9, "context": 1100, "seconds": 0.036}
)";

TEST(DecodeTableTest, InterpolatesInContextAndInBatch) {
  const auto table = DecodeTable::Parse(kTable, "t.jsonl");
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_NEAR(table->Seconds(1, 100), 0.010, 1e-15);
  EXPECT_NEAR(table->Seconds(1, 600), 0.015, 1e-15);
  EXPECT_NEAR(table->Seconds(5, 100), 0.014, 1e-15);
  EXPECT_NEAR(table->Seconds(5, 1100), 0.028, 1e-15);
  EXPECT_NEAR(table->Seconds(1, 2100), 0.030, 1e-15);  // the last slope goes on
  EXPECT_NEAR(table->Seconds(1, 0), 0.010, 1e-15);     // nothing known below
  EXPECT_NEAR(table->Seconds(90, 100), 0.018, 1e-15);  // nor above the largest batch
}

TEST(DecodeTableTest, CurvesAreTheTableOverTheTotalContext) {
  const auto table = DecodeTable::Parse(kTable, "t.jsonl");
  ASSERT_TRUE(table.ok());
  for (const int64_t batch : {1, 5, 9, 30}) {
    const DecodeCurve curve = table->Curve(batch);
    for (const int64_t context : {0, 50, 100, 600, 1100, 4000}) {
      EXPECT_NEAR(curve.Iteration(context * batch),
                  table->Seconds(static_cast<double>(batch), static_cast<double>(context)), 1e-12);
    }
  }
}

TEST(DecodeTableTest, BadLinesAreNamed) {
  const auto message = [](const std::string& text) {
    const auto table = DecodeTable::Parse(text, "t.jsonl");
    return table.ok() ? std::string("accepted") : table.status().message();
  };
  const std::string good = R"({"batch": 1, "context": 0, "seconds": 1})"
                           "\n";
  EXPECT_EQ(message(good + "{"), "t.jsonl:2: column 2: not JSON: expected a key in quotes");
  EXPECT_EQ(message(good + R"({"batch": 1, "context": 4, "second": 1})"),
            "t.jsonl:2: second: unknown key");
  EXPECT_EQ(message(R"({"batch": 1, "context": 4})"), "t.jsonl:1: seconds: is missing");
  EXPECT_EQ(message(R"({"batch": "1", "context": 4, "seconds": 1})"),
            "t.jsonl:1: batch = \"1\": must be an integer");
  EXPECT_EQ(message(R"({"batch": 0, "context": 4, "seconds": 1})"),
            "t.jsonl:1: batch = 0: must be >= 1");
  EXPECT_EQ(message(R"({"batch": 1, "context": 18446744073709551615, "seconds": 1})"),
            "t.jsonl:1: context = 18446744073709551615: must be <= 100000000");
  EXPECT_EQ(message(R"({"batch": 1, "context": 4, "seconds": -1})"),
            "t.jsonl:1: seconds = -1: must be >= 1e-09");
  EXPECT_NE(message(R"({"batch": 1, "context": 4, "seconds": 1e999})"), "accepted");
  EXPECT_EQ(message(good + good), "t.jsonl:2: batch 1 at context 0 stands twice");
  EXPECT_NE(message(good + R"({"batch": 2, "context": 5, "seconds": 1})"), "accepted");
  EXPECT_NE(message(good + R"({"batch": 1, "context": 5, "seconds": 0.5})"), "accepted");
  EXPECT_EQ(message(""), "t.jsonl: must hold at least one line");
  EXPECT_FALSE(DecodeTable::Load("/nowhere/table.jsonl").ok());
}

}  // namespace
}  // namespace pace
