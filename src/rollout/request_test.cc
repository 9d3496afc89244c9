#include "rollout/request.h"

#include <gtest/gtest.h>

#include <functional>

namespace pace {
namespace {

GroupRequest Valid() {
  GroupRequest request;
  request.group = GroupId(1);
  request.prompt_tokens = {1, 2, 3};
  request.num_responses = 4;
  request.stop = {.max_tokens = 5, .stop_tokens = {9}, .stop_strings = {"end"}};
  request.members = {1, 3};
  request.resumed.resize(2);
  request.resumed[1].tokens = {{.id = 4}};
  return request;
}

ModelConfig Config() {
  ModelConfig config;
  config.vocab_size = 10;
  config.max_positions = 8;
  return config;
}

TEST(RequestTest, AValidRequestPasses) {
  const Status status = CheckRequest(Valid(), Config(), true);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(RequestTest, EveryBrokenRuleIsNamed) {
  struct Case {
    std::string names;
    std::function<void(GroupRequest&)> spoil;
  };
  const std::vector<Case> cases = {
      {"prompt_tokens", [](auto& r) { r.prompt_tokens.clear(); }},
      {"prompt_tokens[1] = 10", [](auto& r) { r.prompt_tokens[1] = 10; }},
      {"prompt_tokens[0] = -1", [](auto& r) { r.prompt_tokens[0] = -1; }},
      {"prompt = ", [](auto& r) { r.prompt = PromptIndex(int64_t{1} << 40); }},
      {"prompt = -1", [](auto& r) { r.prompt = PromptIndex(-1); }},
      {"num_responses = 0", [](auto& r) { r.num_responses = 0; }},
      {"num_responses", [](auto& r) { r.num_responses = (int64_t{1} << 24) + 1; }},
      {"sampling", [](auto& r) { r.sampling.temperature = -1; }},
      {"greedy_member = 4", [](auto& r) { r.greedy_member = 4; }},
      {"greedy_member = -1", [](auto& r) { r.greedy_member = -1; }},
      {"stop.max_tokens = 0", [](auto& r) { r.stop.max_tokens = 0; }},
      {"8 positions", [](auto& r) { r.stop.max_tokens = 6; }},
      {"8 positions", [](auto& r) { r.prompt_tokens.resize(20, 1); }},
      {"stop.stop_tokens[0] = 10", [](auto& r) { r.stop.stop_tokens[0] = 10; }},
      {"stop.stop_strings[0]", [](auto& r) { r.stop.stop_strings[0] = ""; }},
      {"stop.stop_strings[0]", [](auto& r) { r.stop.stop_strings[0] = "\xE2\x82"; }},
      {"members[1] = 4", [](auto& r) { r.members[1] = 4; }},
      {"members[1] = 1", [](auto& r) { r.members[1] = 1; }},
      {"members[0] = -1", [](auto& r) { r.members[0] = -1; }},
      {"resumed: 1", [](auto& r) { r.resumed.resize(1); }},
      {"resumed: 2", [](auto& r) { r.members.clear(); }},
      {"resumed[1][0] = 10", [](auto& r) { r.resumed[1].tokens[0].id = 10; }},
      {"stop.lengths: 1 for 4", [](auto& r) { r.stop.lengths = {3}; }},
      {"stop.lengths[1] = 0", [](auto& r) { r.stop.lengths = {3, 0, 1, 2}; }},
      {"stop.lengths[2] = 6", [](auto& r) { r.stop.lengths = {3, 5, 6, 2}; }},
      {"cannot pause",
       [](auto& r) {
         r.stop.lengths = {3, 5, 2, 2};
         r.stop.pauses = true;
       }},
      {"resumed[1]: has 1 tokens already, of at most 1",
       [](auto& r) { r.stop.lengths = {5, 5, 5, 1}; }},
      {"resumed[0]: has 5", [](auto& r) { r.resumed[0].tokens.resize(5); }},
      {"resumed[0]: awaits", [](auto& r) { r.resumed[0].awaits_score = true; }},
  };
  for (const Case& c : cases) {
    GroupRequest request = Valid();
    c.spoil(request);
    const Status status = CheckRequest(request, Config(), true);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.names;
    EXPECT_NE(status.message().find(c.names), std::string::npos)
        << c.names << " is not in: " << status.message();
  }
}

TEST(RequestTest, StopStringsNeedATokenizer) {
  EXPECT_FALSE(CheckRequest(Valid(), Config(), false).ok());
  GroupRequest request = Valid();
  request.stop.stop_strings.clear();
  EXPECT_TRUE(CheckRequest(request, Config(), false).ok());
}

TEST(RequestTest, MembersDefaultToAll) {
  GroupRequest request = Valid();
  EXPECT_EQ(request.num_members(), 2);
  EXPECT_EQ(request.member(1), 3);
  request.members.clear();
  EXPECT_EQ(request.num_members(), 4);
  EXPECT_EQ(request.member(2), 2);
}

TEST(RequestTest, ReasonsHaveNames) {
  EXPECT_EQ(FinishReasonName(FinishReason::kStopToken), "stop_token");
  EXPECT_EQ(FinishReasonName(FinishReason::kStopString), "stop_string");
  EXPECT_EQ(FinishReasonName(FinishReason::kMaxTokens), "max_tokens");
}

}  // namespace
}  // namespace pace
