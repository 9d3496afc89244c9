#include <gtest/gtest.h>

#include "http/message.h"
#include "sandbox/program.h"

namespace pace {
namespace {

TEST(OutputTextTest, TextStays) {
  EXPECT_EQ(OutputText("", false), "");
  EXPECT_EQ(OutputText("a\xC3\xA9\xF0\x9F\x98\x80\n", false), "a\xC3\xA9\xF0\x9F\x98\x80\n");
}

// The expected texts are those of CPython 3.11.
TEST(OutputTextTest, OtherBytesAreAnErrorInPythonsWords) {
  const std::string start = "[DecodeError] 'utf-8' codec can't decode ";
  EXPECT_EQ(OutputText("\xff", false), start + "byte 0xff in position 0: invalid start byte");
  EXPECT_EQ(OutputText("ab\x80", false), start + "byte 0x80 in position 2: invalid start byte");
  EXPECT_EQ(OutputText("\xe2\x28", false),
            start + "byte 0xe2 in position 0: invalid continuation byte");
  EXPECT_EQ(OutputText("\xed\xa0\x80", false),
            start + "byte 0xed in position 0: invalid continuation byte");
  EXPECT_EQ(OutputText("\xf0\x9f\x98 ", false),
            start + "bytes in position 0-2: invalid continuation byte");
  EXPECT_EQ(OutputText("x\xe2\x82", false),
            start + "bytes in position 1-2: unexpected end of data");
  EXPECT_EQ(OutputText("\xe2", false), start + "byte 0xe2 in position 0: unexpected end of data");
}

TEST(OutputTextTest, ACutThroughACharacterIsNoError) {
  EXPECT_EQ(OutputText("x\xe2\x82", true), "x");
  EXPECT_NE(OutputText("\xff\xe2\x82", true).find("0xff"), std::string::npos);
}

TEST(Base64Test, GoesThereAndBack) {
  const std::string pairs[][2] = {{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
                                  {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe", "//4="}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_EQ(DecodeBase64(text), bytes);
  }
}

TEST(Base64Test, RefusesWhatHasNoMeaning) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zm9v=", "Z===", "====", "Zm9v\n", "Zh==", "Z g="}) {
    EXPECT_FALSE(DecodeBase64(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace pace
