#include "judge/policy_call.h"

#include <gtest/gtest.h>

#include <vector>

namespace pace {
namespace {

GroupSummary SmallGroup() {
  static const std::vector<MemberSummary> members = {
      MemberSummary::Of(std::vector<Segment>{{PolicyVersion(3), 10}, {PolicyVersion(4), 30}},
                        PolicyVersion(5), std::nullopt),
      MemberSummary::Of(std::vector<Segment>{{PolicyVersion(5), 20}}, PolicyVersion(5), 0.1)};
  return GroupSummary::Of(GroupId(7), PolicyVersion(5), members, 0);
}

TEST(PolicyCallTest, ACallNamesItsMethodAndHasAllNumbersOfAGroup) {
  EXPECT_EQ(JudgeJson(PolicyVersion(6), SmallGroup()),
            R"({"call":"judge","step":6,"group":{"id":7,"assembled":5,"oldest":3,"num_members":2,)"
            R"("num_tokens":60,"generation":0.625,"prefix_score":0.1,"_completed_sum":10}})");
  EXPECT_EQ(BeginStepJson(PolicyVersion(6), {.occupancy = 40, .batch = 12}),
            R"({"call":"begin_step","step":6,"occupancy":40,"batch":12,"served":null})");
  EXPECT_EQ(RestoreStateJson(R"({"a": "b"})"), R"({"call":"restore","state":"{\"a\": \"b\"}"})");
}

TEST(PolicyCallTest, AVerdictIsRead) {
  const auto answer = ParsePolicyAnswer(
      R"({"admit":false,"score":-2.5,"reason":"over_bound","weight":0.5,"percentile":0.25})");
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->fault, RewardFault::kNone);
  EXPECT_EQ(answer->admit, false);
  EXPECT_EQ(answer->score, -2.5);
  EXPECT_EQ(answer->reason, Reason::kOverBound);
  EXPECT_EQ(answer->percentile, 0.25);
}

TEST(PolicyCallTest, FaultsAreOneLine) {
  const auto raised = ParsePolicyAnswer(R"({"error":"ValueError: a\nb"})");
  ASSERT_TRUE(raised.ok());
  EXPECT_EQ(raised->fault, RewardFault::kException);
  EXPECT_EQ(raised->fault_message, "ValueError: a b");
  const auto reason = ParsePolicyAnswer(R"({"admit":true,"score":0,"reason":"mood"})");
  ASSERT_TRUE(reason.ok());
  EXPECT_EQ(reason->fault, RewardFault::kInvalid);
  EXPECT_EQ(reason->fault_message, "gave the reason mood, which is none of pace");
}

TEST(PolicyCallTest, WhatIsNoAnswerIsRefused) {
  for (const char* text :
       {"", "[]", "{\"admit\":1}", "{\"score\":\"1\"}", "{\"other\":1}", "{} {}"}) {
    EXPECT_FALSE(ParsePolicyAnswer(text).ok()) << text;
  }
}

}  // namespace
}  // namespace pace
