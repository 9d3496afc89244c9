#include "sim/recorded_verdicts.h"

#include <gtest/gtest.h>

#include <fstream>

namespace pace {
namespace {

std::string Line(int group, const char* verdict, const char* score) {
  return Concat("{\"group\":", group, ",\"score\":", score, ",\"verdict\":\"", verdict,
                "\",\"reason\":\"within_cutoff\"}\n");
}

RecordedVerdicts Record(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/recorded_verdicts.jsonl";
  std::ofstream(path) << text;
  Result<RecordedVerdicts> recorded = RecordedVerdicts::Open(path);
  EXPECT_TRUE(recorded.ok()) << recorded.status().message();
  return std::move(recorded).value();
}

TEST(RecordedVerdictsTest, AgreementIsCounted) {
  const std::string record = Line(1, "admit", "1.5") + Line(2, "reject", "null");
  RecordedVerdicts recorded = Record(record);
  recorded.See("{\"step\":0}\n");
  recorded.See(Line(1, "admit", "1.5"));
  recorded.See(Line(2, "reject", "null"));
  EXPECT_EQ(recorded.Finish(), "2 verdicts, all as recorded");
}

TEST(RecordedVerdictsTest, TheFirstDifferenceIsNamed) {
  RecordedVerdicts recorded =
      Record(Line(1, "admit", "1.5") + Line(2, "reject", "2") + Line(3, "admit", "1"));
  recorded.See(Line(1, "admit", "1.5"));
  recorded.See(Line(2, "admit", "2"));
  recorded.See(Line(3, "admit", "1.25"));
  EXPECT_EQ(recorded.Finish(),
            "2 of 3 verdicts are not as recorded; the first: recorded group 2 reject "
            "(within_cutoff, score 2), replayed group 2 admit (within_cutoff, score 2)");
}

TEST(RecordedVerdictsTest, AReplayMayBeginLaterAndEndEarlier) {
  RecordedVerdicts recorded =
      Record(Line(1, "admit", "1") + Line(2, "admit", "2") + Line(3, "admit", "3"));
  recorded.See(Line(2, "admit", "2"));
  EXPECT_EQ(recorded.Finish(), "1 verdicts, all as recorded; the record holds 1 more");
}

}  // namespace
}  // namespace pace
