#include "config/text_list.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

using Items = std::vector<std::string>;

Items Parsed(std::string_view text) {
  const auto items = ParseTextList(text);
  EXPECT_TRUE(items.ok()) << text << ": " << items.status().message();
  return items.ok() ? *items : Items{"an error"};
}

std::string ErrorOf(std::string_view text) {
  const auto items = ParseTextList(text);
  return items.ok() ? "accepted" : items.status().message();
}

TEST(TextListTest, BracketsAroundTheListMayBeLeftOut) {
  EXPECT_EQ(Parsed("a,b"), (Items{"a", "b"}));
  EXPECT_EQ(Parsed("[a, b]"), (Items{"a", "b"}));
  EXPECT_EQ(Parsed(""), Items());
  EXPECT_EQ(Parsed(" [ ] "), Items());
}

TEST(TextListTest, SpacesBracketsAndQuotesInsideAnItemStay) {
  EXPECT_EQ(Parsed("[my data/a.jsonl]"), Items{"my data/a.jsonl"});
  EXPECT_EQ(Parsed("[a[1].jsonl]"), Items{"a[1].jsonl"});
  EXPECT_EQ(Parsed("who=John [Jr] Smith"), Items{"who=John [Jr] Smith"});
  EXPECT_EQ(Parsed("x=[1, 2],y={\"a\": 1, \"b\": 2}"),
            (Items{"x=[1, 2]", "y={\"a\": 1, \"b\": 2}"}));
  EXPECT_EQ(Parsed("it's,so"), (Items{"it's", "so"}));
}

TEST(TextListTest, QuotesHoldWhatWouldEndAnItem) {
  EXPECT_EQ(Parsed(R"(["a,b.jsonl", 'c, ''d'''])"), (Items{"a,b.jsonl", "c, 'd'"}));
  EXPECT_EQ(Parsed(R"("a\"b\\c\n", "")"), (Items{"a\"b\\c\n", ""}));
}

TEST(TextListTest, WhatIsNoListIsRefused) {
  EXPECT_EQ(ErrorOf("a,,b"), "an item is empty (write \"\" for empty text)");
  EXPECT_EQ(ErrorOf("[a"), "a [ has no partner (put the item in quotes)");
  EXPECT_EQ(ErrorOf("a]"), "a ] has no partner (put the item in quotes)");
  EXPECT_EQ(ErrorOf("[a],[b]"), "a ] has no partner (put the item in quotes)");
  EXPECT_EQ(ErrorOf("\"a"), "a quote is not closed");
  EXPECT_EQ(ErrorOf("\"a\" b"), "a comma must follow an item in quotes");
  EXPECT_EQ(ErrorOf(R"("\q")"), "in double quotes \\ must precede \" \\ / n t r");
}

}  // namespace
}  // namespace pace
