// Tool calls in a model's text, and the responses that go back.
#include <gtest/gtest.h>

#include "text/hermes.h"
#include "text/python_text.h"
#include "text/truncation.h"

namespace pace {
namespace {

TEST(HermesTest, TakesCallsOutOfTheText) {
  const HermesMessage message = ParseHermes(
      "a<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1e20}}\n</tool_call>b"
      "<tool_call>{bad}</tool_call>c");
  EXPECT_EQ(message.content, "abc");
  ASSERT_EQ(message.calls.size(), 1u);
  EXPECT_EQ(message.calls[0].name, "f");
  EXPECT_EQ(message.calls[0].arguments, "{\"x\": 1e+20}");
}

TEST(HermesTest, LeavesAnOpenCallInTheText) {
  EXPECT_EQ(ParseHermes("x<tool_call>{").content, "x<tool_call>{");
}

TEST(TruncationTest, CountsCodePointsAndNotTheMarker) {
  EXPECT_EQ(TruncateToolResponse("éabcdé", 4, TruncationSide::kMiddle), "éa...(truncated)...dé");
  EXPECT_EQ(TruncateToolResponse("éabc", 4, TruncationSide::kMiddle), "éabc");
  EXPECT_EQ(TruncateToolResponse("abc", 2, TruncationSide::kLeft), "(truncated)...bc");
  EXPECT_EQ(TruncateToolResponse("abc", 2, TruncationSide::kRight), "ab...(truncated)");
  EXPECT_EQ(TruncateToolResponse("ab", 1, TruncationSide::kMiddle), "...(truncated)...ab");
}

TEST(PythonTextTest, RealsPrintAsInPython) {
  EXPECT_EQ(PythonReal(1.0), "1.0");
  EXPECT_EQ(PythonReal(-0.0), "-0.0");
  EXPECT_EQ(PythonReal(1e16), "1e+16");
  EXPECT_EQ(PythonReal(123456789012345.0), "123456789012345.0");
  EXPECT_EQ(PythonReal(0.0001), "0.0001");
  EXPECT_EQ(PythonReal(0.00001234), "1.234e-05");
}

TEST(PythonTextTest, ReadsAndWritesWhatPythonDoes) {
  for (const char* text : {"{\"a\": [1, -2.5, NaN, Infinity], \"b\": 123456789012345678901}",
                           "\"\\u0001\\\"\\\\é\"", "{}", "[[], null, true]"}) {
    const Result<Value> value = ParsePythonJson(text);
    ASSERT_TRUE(value.ok()) << text;
    EXPECT_EQ(*ToPythonJson(*value), text);
  }
  for (const char* text : {"", "{", "[1,]", "01", "\"\n\"", "1 2", "{'a': 1}", "[1", "-", "1."}) {
    EXPECT_FALSE(ParsePythonJson(text).ok()) << text;
  }
}

}  // namespace
}  // namespace pace
