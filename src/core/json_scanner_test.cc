#include "core/json_scanner.h"

#include <gtest/gtest.h>

#include <string>

namespace pace {
namespace {

// The message of the error, or "ok", for a text that may be any JSON value.
std::string Check(std::string_view text) {
  JsonScanner scan(text);
  scan.Skip();
  scan.End();
  return scan.ok() ? "ok" : scan.status().message();
}

std::string ReadInteger(std::string_view text) {
  JsonScanner scan(text);
  int64_t value = 0;
  scan.EnterObject();
  while (scan.NextKey()) scan.Integer(0, 100, "hint", value);
  scan.End();
  return scan.ok() ? std::to_string(value) : scan.status().message();
}

std::string ReadText(std::string_view text) {
  JsonScanner scan(text);
  std::string value;
  scan.Text(value);
  scan.End();
  return scan.ok() ? value : scan.status().message();
}

TEST(JsonScannerTest, AcceptsWhatJsonAllows) {
  for (const char* text :
       {"{}", "[]", " [1, -0, 2.5e-3, 1E+9] ", R"({"a":{"b":[null,true,false]}})", R"("\u00e9\n")",
        "[[],{},[{}]]", "\"\xc3\xa9\"", "0"}) {
    EXPECT_EQ(Check(text), "ok") << text;
  }
}

TEST(JsonScannerTest, RefusesWhatJsonDoesNotAllow) {
  for (const char* text : {"",
                           "{",
                           "[",
                           "[1,]",
                           "{\"a\":1,}",
                           "{\"a\"}",
                           "{a:1}",
                           "[1 2]",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "1e",
                           "-",
                           "NaN",
                           "Infinity",
                           "nul",
                           "nulll",
                           "truefalse",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\xff\"",
                           "\"\xc0\xaf\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xe2\x82\"",
                           "\"\t\"",
                           "[] []",
                           "{}x",
                           "[,1]",
                           "{,\"a\":1}",
                           "]",
                           "}"}) {
    EXPECT_NE(Check(text), "ok") << text;
  }
}

TEST(JsonScannerTest, RefusesTextThatNestsWithoutEnd) {
  EXPECT_NE(Check(std::string(1000000, '[')).find("nested too deeply"), std::string::npos);
}

TEST(JsonScannerTest, NamesFieldValueRuleAndHint) {
  EXPECT_EQ(ReadInteger(R"({"n": 7})"), "7");
  EXPECT_EQ(ReadInteger(R"({"n": -1})"), "n = -1: must be >= 0 (hint)");
  EXPECT_EQ(ReadInteger(R"({"n": 101})"), "n = 101: must be <= 100 (hint)");
  EXPECT_EQ(ReadInteger(R"({"n": 99999999999999999999})"),
            "n = 99999999999999999999: must be <= 100 (hint)");
  EXPECT_EQ(ReadInteger(R"({"n": 1.5})"), "n = 1.5: must be an integer (hint)");
  EXPECT_EQ(ReadInteger(R"({"n": "7"})"), "n = \"7\": must be an integer");
  EXPECT_EQ(ReadInteger(R"({"n": [7]})"), "n = [7: must be an integer");
}

TEST(JsonScannerTest, NumbersTooLargeForADoubleAreNotFinite) {
  JsonScanner scan("1e999");
  double value = 0;
  EXPECT_FALSE(scan.Real(-1e308, 1e308, "", value));
  EXPECT_NE(scan.status().message().find("must be a finite number"), std::string::npos);
}

TEST(JsonScannerTest, NumbersTooSmallForADoubleAreZero) {
  JsonScanner scan("1e-999");
  double value = 1;
  EXPECT_TRUE(scan.Real(0, 1, "", value));
  EXPECT_EQ(value, 0);
}

TEST(JsonScannerTest, UnescapesTextsAndKeys) {
  EXPECT_EQ(ReadText(R"("a\"\\\/\u0041\u00e9\ud83d\ude00")"), "a\"\\/A\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(ReadInteger(R"({"\u006e": -1})"), "n = -1: must be >= 0 (hint)");
}

TEST(JsonScannerTest, TheFirstErrorSticks) {
  JsonScanner scan("[x, 1]");
  double value = 0;
  scan.EnterArray();
  ASSERT_TRUE(scan.NextItem());
  EXPECT_FALSE(scan.Real(0, 1, "", value));
  const std::string first = scan.status().message();
  EXPECT_FALSE(scan.NextItem());
  EXPECT_FALSE(scan.Fail("another"));
  EXPECT_EQ(scan.status().message(), first);
}

}  // namespace
}  // namespace pace
