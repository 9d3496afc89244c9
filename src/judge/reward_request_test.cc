#include "judge/reward_request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/reward_options.h"

namespace pace {
namespace {

TEST(RewardRequestTest, ABatchIsWrittenWithEveryField) {
  RewardRequest request{.id = "a/1",
                        .response = "so 3\n\"4\"",
                        .answer = "4",
                        .prompt = "\"What?\"",
                        .data_source = "mine",
                        .ability = "math",
                        .tokens = {5, 6},
                        .num_turns = 2,
                        .num_tool_calls = 1};
  const RewardRequest* const requests[] = {&request};
  EXPECT_EQ(BatchJson(7, requests),
            "{\"batch\":7,\"items\":[{\"id\":\"a/1\",\"response\":\"so 3\\u000a\\\"4\\\"\","
            "\"answer\":\"4\",\"prompt\":\"\\\"What?\\\"\",\"data_source\":\"mine\","
            "\"ability\":\"math\",\"extra_info\":\"\",\"tokens\":[5,6],\"num_turns\":2,\"num_tool_"
            "calls\":1}]}");
}

TEST(RewardRequestTest, RepliesAreRead) {
  const auto replies =
      ParseReplies(R"({"batch":3,"results":[{"score":0.5,"extracted":"4","detail":"{\"a\":1}"},)"
                   R"({"score":-1,"correct":true},{"error":"ValueError: no\nline"}]})",
                   3, 3);
  ASSERT_TRUE(replies.ok()) << replies.status().message();
  EXPECT_EQ((*replies)[0].score, 0.5);
  EXPECT_TRUE((*replies)[0].correct);
  EXPECT_EQ((*replies)[0].extracted, "4");
  EXPECT_EQ((*replies)[0].detail, "{\"a\":1}");
  EXPECT_TRUE((*replies)[1].correct);
  EXPECT_EQ((*replies)[2].fault, RewardFault::kException);
  EXPECT_EQ((*replies)[2].message.find('\n'), std::string::npos);
}

TEST(RewardRequestTest, WhatIsNoRewardIsInvalid) {
  const auto fault = [](const std::string& result) {
    const auto replies = ParseReplies("{\"batch\":0,\"results\":[" + result + "]}", 0, 1);
    return replies.ok() ? (*replies)[0].fault : RewardFault::kNone;
  };
  EXPECT_EQ(fault("{}"), RewardFault::kInvalid);
  EXPECT_EQ(fault(R"({"score":1,"detail":"[1]"})"), RewardFault::kInvalid);
  EXPECT_EQ(fault(R"({"score":1,"detail":"{"})"), RewardFault::kInvalid);
  EXPECT_EQ(fault("{\"score\":1,\"detail\":\"" + std::string(5000, 'x') + "\"}"),
            RewardFault::kInvalid);
}

TEST(RewardRequestTest, AProcessMayGiveAResponseBack) {
  const auto replies = ParseReplies(R"({"batch":0,"results":[{"score":1},{"later":true}]})", 0, 2);
  ASSERT_TRUE(replies.ok()) << replies.status().message();
  EXPECT_FALSE((*replies)[0].later);
  EXPECT_TRUE((*replies)[1].later);
}

TEST(RewardRequestTest, AnAnswerToAnotherBatchIsAnError) {
  EXPECT_EQ(ParseReplies(R"({"batch":2,"results":[{"score":1}]})", 3, 1).status().message(),
            "answered batch 2 instead of 3");
  EXPECT_EQ(ParseReplies(R"({"batch":3,"results":[{"score":1}]})", 3, 2).status().message(),
            "gave 1 results for 2 responses");
  for (const char* broken :
       {"", "[]", "{\"batch\":3", "{\"batch\":3,\"results\":[{\"score\":NaN}]}",
        "{\"batch\":3,\"results\":7}"}) {
    EXPECT_FALSE(ParseReplies(broken, 3, 1).ok()) << broken;
  }
}

TEST(RewardRequestTest, TheVerifierNamesFileAndFunction) {
  EXPECT_FALSE(OwnRewardOf("dapo").value().has_value());
  const auto reward = OwnRewardOf("python:a/b:c.py:score").value();
  ASSERT_TRUE(reward.has_value());
  EXPECT_EQ(reward->python.file, "a/b:c.py");
  EXPECT_EQ(reward->python.name, "score");
  for (const char* wrong :
       {"python:", "python:a.py", "python::score", "python:a.py:", "python:a.py:1x"}) {
    EXPECT_EQ(OwnRewardOf(wrong).status().message(),
              std::string("task.verifier = ") + wrong +
                  ": must be python:FILE:FUNCTION, as python:my_rewards.py:score");
  }
}

}  // namespace
}  // namespace pace
