#include "record/response_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/utf8.h"

namespace pace {
namespace {

ResponseRecord SomeRecord() {
  ResponseRecord record;
  record.head = {.step = 7, .group = 91, .member = 3, .reward = 0.5, .reason = Reason::kOverCutoff};
  record.problem = 12;
  record.admitted = false;
  record.correct = true;
  record.waiting = 2;
  record.generation = 0.25;
  record.lag = 2.5;
  record.finish = "stop_token";
  record.length = 31;
  record.answer = "34";
  record.extracted = "34";
  record.prompt = "<|user|>What is \"1+33\"?\n";
  record.turns = {{false, "<tool_call>"}, {true, "34\n"}, {false, "Answer: 34"}};
  record.picked = {"best", "over_cutoff"};
  return record;
}

TEST(ResponseRecordTest, ALineReadsBackToTheRecord) {
  const ResponseRecord record = SomeRecord();
  const std::string line = ResponseLine(record);
  EXPECT_EQ(line,
            R"({"step":7,"group":91,"member":3,"problem":12,"verdict":"reject",)"
            R"("reason":"over_cutoff","waiting":2,"generation":0.25,"lag":2.5,"reward":0.5,)"
            R"("correct":true,"finish":"stop_token","length":31,"picked":["best","over_cutoff"],)"
            R"("answer":"34","extracted":"34","prompt":"<|user|>What is \"1+33\"?\u000a",)"
            R"("turns":[{"by":"policy","text":"<tool_call>"},{"by":"tool","text":"34\u000a"},)"
            R"({"by":"policy","text":"Answer: 34"}]})");
  const Result<ResponseRecord> read = ParseResponseLine(line);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ResponseLine(*read), line);
  EXPECT_EQ(read->turns, record.turns);
}

TEST(ResponseRecordTest, AnEvaluationHasABenchmarkAndNoVerdict) {
  ResponseRecord record;
  record.benchmark = "held_out";
  record.turns = {{false, "x"}};
  EXPECT_EQ(ResponseLine(record),
            R"({"step":0,"benchmark":"held_out","group":0,"member":0,"problem":0,"reward":0,)"
            R"("correct":false,"finish":"","length":0,"answer":"","extracted":null,"prompt":"",)"
            R"("turns":[{"by":"policy","text":"x"}]})");
  EXPECT_FALSE(ParseResponseLine(ResponseLine(record))->extracted.has_value());
}

TEST(ResponseRecordTest, BytesThatAreNoTextAreMended) {
  ResponseRecord record = SomeRecord();
  record.turns = {{false, "a\xff"}};
  record.extracted = "\xc3";
  const std::string line = ResponseLine(record);
  EXPECT_TRUE(IsWellFormed(line));
  EXPECT_TRUE(ParseResponseLine(line).ok());
}

TEST(ResponseRecordTest, HostileLinesAreErrorsAndNotCrashes) {
  EXPECT_EQ(ParseResponseLine("{}").status().message(), "missing key step");
  EXPECT_EQ(ParseResponseLine(R"({"step":1})").status().message(), "missing key turns");
  for (const char* line :
       {"", "[", R"({"step":-1,"turns":[]})", R"({"step":1,"turns":3})",
        R"({"step":1,"turns":[{"by":1}]})", R"({"step":1,"turns":[],"reason":"whim"})",
        R"({"step":1,"turns":[],"picked":{}})", R"({"step":1,"turns":[],"reward":"x"})"}) {
    EXPECT_FALSE(ParseResponseLine(line).ok()) << line;
  }
  EXPECT_TRUE(ParseResponseLine(R"({"step":1,"turns":[],"reward":null,"later":[1]})").ok());
}

TEST(ResponseRecordTest, LongTextsLoseTheirMiddle) {
  EXPECT_EQ(CutMiddle("short", 10), "short");
  EXPECT_EQ(CutMiddle("0123456789abcdef", 8), "0123\n[... 8 bytes left out ...]\ncdef");
  std::string accents;
  for (int i = 0; i < 50; ++i) accents += "\u00e9";
  for (size_t most = 1; most < 20; ++most) {
    EXPECT_TRUE(IsWellFormed(CutMiddle(accents, most))) << most;
  }
  ResponseRecord record = SomeRecord();
  record.turns.assign(100, {false, std::string(10'000, 'x')});
  CutTexts(record, 16384);
  EXPECT_LT(ResponseLine(record).size(), 40'000u);
}

std::vector<std::string> RolesOf(const std::vector<ResponseRecord>& records, int64_t member) {
  for (const ResponseRecord& record : records) {
    if (record.head.member == member) return record.picked;
  }
  return {};
}

TEST(ResponsePickerTest, TakesBestWorstRandomAndOnePerReason) {
  ResponsePicker picker;
  for (int64_t i = 0; i < 100; ++i) {
    ResponseRecord record;
    record.head = {.step = 3,
                   .group = i / 10,
                   .member = i,
                   .reward = static_cast<double>(i),
                   .reason = i < 30 ? Reason::kOverCutoff : Reason::kUnderCutoff};
    if (picker.Wants(record.head)) picker.Add(record);
  }
  const std::vector<ResponseRecord> taken = picker.Take();
  EXPECT_GE(taken.size(), 4u);
  EXPECT_LE(taken.size(), 6u);
  EXPECT_EQ(taken.front().head.member, 99);
  EXPECT_EQ(RolesOf(taken, 99).front(), "best");
  EXPECT_EQ(RolesOf(taken, 0).front(), "worst");
  std::vector<std::string> roles;
  for (const ResponseRecord& record : taken) {
    roles.insert(roles.end(), record.picked.begin(), record.picked.end());
  }
  std::sort(roles.begin(), roles.end());
  EXPECT_EQ(roles, (std::vector<std::string>{"best", "over_cutoff", "random", "random",
                                             "under_cutoff", "worst"}));
  EXPECT_TRUE(picker.empty());
}

TEST(ResponsePickerTest, TheOrderOfRecordsDoesNotMatter) {
  std::vector<ResponseRecord> records;
  for (int64_t i = 0; i < 40; ++i) {
    ResponseRecord record;
    record.head = {.step = i % 3, .group = i, .reward = static_cast<double>(i % 2)};
    records.push_back(record);
  }
  const auto lines = [&records] {
    ResponsePicker picker;
    for (const ResponseRecord& record : records) {
      if (picker.Wants(record.head)) picker.Add(record);
    }
    std::vector<std::string> out;
    for (const ResponseRecord& record : picker.Take()) out.push_back(ResponseLine(record));
    return out;
  };
  const std::vector<std::string> forward = lines();
  std::reverse(records.begin(), records.end());
  EXPECT_EQ(lines(), forward);
}

TEST(SamplesStepTest, ALongRunIsSampledMoreRarely) {
  int64_t count = 0;
  for (int64_t step = 0; step < 64; ++step) EXPECT_TRUE(SamplesStep(step));
  for (int64_t step = 64; step < 128; ++step) count += SamplesStep(step) ? 1 : 0;
  EXPECT_EQ(count, 32);
  count = 0;
  for (int64_t step = 0; step < 1 << 20; ++step) count += SamplesStep(step) ? 1 : 0;
  EXPECT_EQ(count, 64 + 14 * 32);
}

}  // namespace
}  // namespace pace
