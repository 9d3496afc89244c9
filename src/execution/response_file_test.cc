#include "execution/response_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "core/fake_files.h"

namespace pace {
namespace {

std::string Scratch(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(PACE_BINARY_DIR) / "response_scratch";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void PutBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

PartialResponse Response() {
  PartialResponse response;
  response.tokens = {
      {.id = 7, .version = PolicyVersion(3), .logprob = -0.1F, .sampled_logprob = -0.1F},
      {.id = 17,
       .version = PolicyVersion(4),
       .logprob = -1.0F / 3,
       .sampled_logprob = -std::numeric_limits<float>::infinity()},
      {.id = 2, .is_tool = true, .version = PolicyVersion(4)}};
  response.paused = FinishReason::kStopString;
  response.prefix_score = 1.0 / 7;
  response.awaits_score = true;
  response.num_interrupts = 2;
  return response;
}

GroupTrajectories GroupOfOne(int64_t id) {
  GroupTrajectories group;
  group.group = GroupId(id);
  group.prompt = PromptIndex(12);
  group.worker = WorkerId(1);
  group.prompt_tokens = {3, 4, 5};
  group.greedy_last = true;
  group.members.resize(2);
  group.members[1] = Trajectory{.response = Response(),
                                .reason = FinishReason::kStopToken,
                                .correct = true,
                                .reward = 1.0 / 3,
                                .completed = PolicyVersion(5)};
  group.tools = {{.num_calls = 3, .num_failures = 1, .time = Seconds(0.5)}, {}};
  return group;
}

TEST(ResponseFileTest, GroupsReadBackToTheBit) {
  const std::string path = Scratch("groups.bin");
  const std::vector<GroupTrajectories> groups = {GroupOfOne(41), GroupOfOne(42)};
  const Result<FileSum> written = WriteGroups(path, groups);
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(written->num_bytes, static_cast<int64_t>(BytesOf(path).size()));
  std::vector<GroupTrajectories> again;
  const Result<FileSum> read = ReadGroups(path, again);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, *written);
  ASSERT_EQ(again.size(), 2U);
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].group, groups[i].group);
    EXPECT_EQ(again[i].prompt, groups[i].prompt);
    EXPECT_EQ(again[i].worker, groups[i].worker);
    EXPECT_EQ(again[i].prompt_tokens, groups[i].prompt_tokens);
    EXPECT_EQ(again[i].tools, groups[i].tools);
    EXPECT_TRUE(again[i].greedy_last);
    ASSERT_EQ(again[i].members.size(), 2U);
    EXPECT_FALSE(again[i].members[0].has_value());
    const Trajectory& member = *again[i].members[1];
    EXPECT_EQ(member.response, Response());
    EXPECT_EQ(member.reward, 1.0 / 3);
    EXPECT_EQ(member.completed, PolicyVersion(5));
    EXPECT_TRUE(member.correct);
    EXPECT_EQ(member.reason, FinishReason::kStopToken);
  }
}

TEST(ResponseFileTest, ResponsesInFlightReadBackToTheBit) {
  const std::string path = Scratch("in_flight.bin");
  const GroupInFlight group{
      .group = GroupId(3), .members = {0, 2}, .responses = {Response(), PartialResponse{}}};
  ASSERT_TRUE(WriteInFlight(path, {{group}}).ok());
  std::vector<GroupInFlight> again;
  const Result<FileSum> read = ReadInFlight(path, again);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].group, group.group);
  EXPECT_EQ(again[0].members, group.members);
  EXPECT_EQ(again[0].responses, group.responses);
}

TEST(ResponseFileTest, LogProbsKeepTheirBitsWhateverTheyAre) {
  GroupInFlight group{.group = GroupId(3), .members = {0}, .responses = {{}}};
  const float nan = std::bit_cast<float>(0x7fc12345U);
  group.responses[0].tokens = {{.id = 1, .logprob = nan, .sampled_logprob = -nan},
                               {.id = 1, .logprob = -0.0F, .sampled_logprob = 0}};
  std::string bytes;
  AppendRecord(bytes, group);
  GroupInFlight again;
  ASSERT_TRUE(ReadRecord(bytes, again).ok());
  for (size_t i = 0; i < 2; ++i) {
    const TokenRecord& token = again.responses[0].tokens[i];
    const TokenRecord& expected = group.responses[0].tokens[i];
    EXPECT_EQ(std::bit_cast<uint32_t>(token.logprob), std::bit_cast<uint32_t>(expected.logprob));
    EXPECT_EQ(std::bit_cast<uint32_t>(token.sampled_logprob),
              std::bit_cast<uint32_t>(expected.sampled_logprob));
  }
}

TEST(ResponseFileTest, ATokenTakesEightBytesOrTwelve) {
  for (const bool truncated : {false, true}) {
    GroupInFlight group{.group = GroupId(3), .members = {0}, .responses = {{}}};
    for (int i = 0; i < 10000; ++i) {
      group.responses[0].tokens.push_back({.id = i,
                                           .version = PolicyVersion(i / 1000),
                                           .logprob = -0.5F,
                                           .sampled_logprob = truncated ? -0.25F : -0.5F});
    }
    std::string bytes;
    AppendRecord(bytes, group);
    EXPECT_LT(static_cast<double>(bytes.size()) / 10000, truncated ? 12.1 : 8.1);
  }
}

TEST(ResponseFileTest, EveryTruncationAndEveryFlippedByteIsAnError) {
  const std::string path = Scratch("damaged.bin");
  ASSERT_TRUE(WriteGroups(path, {{GroupOfOne(41), GroupOfOne(42)}}).ok());
  const std::string whole = BytesOf(path);
  std::vector<GroupTrajectories> groups;
  for (size_t at = 0; at < whole.size(); ++at) {
    const auto put = [&](char byte) {
      std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
          .seekp(static_cast<std::streamoff>(at))
          .put(byte);
    };
    put(static_cast<char>(whole[at] ^ (1 << (at % 8))));
    EXPECT_FALSE(ReadGroups(path, groups).ok()) << at;
    put(whole[at]);
  }
  ASSERT_EQ(BytesOf(path), whole);
  for (size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const Result<FileSum> read = ReadGroups(path, groups);
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
  }
  PutBytes(path, whole + '\0');
  EXPECT_FALSE(ReadGroups(path, groups).ok());
  PutBytes(path, whole);
  EXPECT_TRUE(ReadGroups(path, groups).ok());
  std::vector<GroupInFlight> other;
  EXPECT_FALSE(ReadInFlight(path, other).ok());
}

TEST(ResponseFileTest, AFileIsReadInBlocksWhateverItsSize) {
  MemoryFiles memory;
  const ScopedFiles scoped(memory);
  std::vector<GroupTrajectories> groups;
  // Records smaller and larger than a block.
  for (const size_t num_tokens : {10U, 70'000U, 10U, 400'000U, 200'000U}) {
    Trajectory member{.response = Response(), .reason = FinishReason::kStopToken};
    member.response.tokens.resize(num_tokens, {.id = 5});
    groups.push_back(GroupOfOne(std::ssize(groups)));
    groups.back().members[1] = std::move(member);
  }
  const Result<FileSum> written = WriteGroups("groups.bin", groups);
  ASSERT_TRUE(written.ok()) << written.status().message();
  std::vector<GroupTrajectories> read;
  const Result<FileSum> sum = ReadGroups("groups.bin", read);
  ASSERT_TRUE(sum.ok()) << sum.status().message();
  EXPECT_EQ(sum->crc32c, written->crc32c);
  EXPECT_EQ(sum->num_bytes, written->num_bytes);
  ASSERT_EQ(read.size(), groups.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].members[1]->response.tokens.size(),
              groups[i].members[1]->response.tokens.size());
  }
  EXPECT_EQ(memory.num_maps(), 0);
}

TEST(ResponseFileTest, HugeCountsAreRefusedBeforeMemoryIsTaken) {
  GroupInFlight group{.group = GroupId(3), .members = {0}, .responses = {{}}};
  std::string bytes;
  AppendRecord(bytes, group);
  for (size_t at = 0; at + 8 <= bytes.size(); ++at) {
    std::string huge = bytes;
    for (size_t i = 0; i < 8; ++i) huge[at + i] = '\x7f';
    GroupInFlight ignored;
    (void)ReadRecord(huge, ignored);
  }
}

TEST(ResponseFileTest, WhatIsNoPlainFileIsOneLine) {
  std::vector<GroupTrajectories> groups;
  EXPECT_FALSE(ReadGroups(Scratch("nothing"), groups).ok());
  EXPECT_FALSE(ReadGroups(std::filesystem::path(Scratch("x")).parent_path().string(), groups).ok());
  EXPECT_FALSE(WriteGroups("/nowhere/at/all.bin", {}).ok());
}

}  // namespace
}  // namespace pace
