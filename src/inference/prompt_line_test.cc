#include "inference/prompt_line.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(PromptLineTest, ReadsEachForm) {
  EXPECT_EQ(*ParsePromptLine(R"({"ids": [1, 2]})")->ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(*ParsePromptLine(R"({"name": [{}], "text": "a\n"})")->text, "a\n");
  const Result<PromptLine> chat =
      ParsePromptLine(R"({"messages": [{"role": "user", "content": "x"}], "tools": null})");
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(chat->messages->list().size(), 1u);
  EXPECT_FALSE(chat->tools.has_value());
}

TEST(PromptLineTest, WhatIsWrongIsSaidInOneLine) {
  const std::string needs = "needs 'ids', 'text' or 'messages', one of them";
  EXPECT_EQ(ParsePromptLine("{}").status().message(), needs);
  EXPECT_EQ(ParsePromptLine(R"({"ids": [1], "text": "a"})").status().message(), needs);
  EXPECT_EQ(ParsePromptLine(R"({"messages": "x"})").status().message(), "messages: must be a list");
  for (const char* const line :
       {"", "[]", "hello", R"({"ids": [-1]})", R"({"ids": [1.5]})", R"({"ids": [4294967296]})",
        R"({"ids": 3})", R"({"text": 3})", R"({"text": "a"} x)", R"({"text": "a)"}) {
    const Result<PromptLine> parsed = ParsePromptLine(line);
    ASSERT_FALSE(parsed.ok()) << line;
    EXPECT_EQ(parsed.status().message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace pace
