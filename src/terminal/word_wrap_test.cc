#include <gtest/gtest.h>

#include "terminal/terminal_text.h"

namespace pace {
namespace {

std::string Wrapped(size_t width, const std::vector<std::string>& pieces) {
  WordWrap wrap(width);
  std::string out;
  for (const std::string& piece : pieces) out += wrap.Feed(piece);
  return out + wrap.Finish();
}

TEST(WordWrapTest, BreaksBetweenWordsWhateverThePieces) {
  EXPECT_EQ(Wrapped(10, {"Once upon a time there"}), "Once upon\na time\nthere");
  EXPECT_EQ(Wrapped(10, {"On", "ce up", "on", " a ti", "me there"}), "Once upon\na time\nthere");
}

TEST(WordWrapTest, KeepsLineEndsIndentationAndLongWords) {
  EXPECT_EQ(Wrapped(8, {"a\n\n  b c\n"}), "a\n\n  b c\n");
  EXPECT_EQ(Wrapped(4, {"ab abcdefgh c"}), "ab\nabcdefgh\nc");
  EXPECT_EQ(Wrapped(6, {"éé éé éé"}), "éé éé\néé");
}

TEST(WordWrapTest, WidthZeroChangesNothing) {
  EXPECT_EQ(Wrapped(0, {"a  b ", " c"}), "a  b  c");
}

}  // namespace
}  // namespace pace
