#include <gtest/gtest.h>

#include "terminal/terminal_text.h"

namespace pace {
namespace {

TEST(ByteSizeTest, ReadsUnitsOfBothKinds) {
  EXPECT_EQ(*ParseByteSize("--size", "5GB"), 5'000'000'000);
  EXPECT_EQ(*ParseByteSize("--size", "2gib"), int64_t{2} << 30);
  EXPECT_EQ(*ParseByteSize("--size", "1.5MiB"), 3 << 19);
  EXPECT_EQ(*ParseByteSize("--size", "100"), 100);
  EXPECT_EQ(*ParseByteSize("--size", "7B"), 7);
}

TEST(ByteSizeTest, RefusesWhatIsNoSize) {
  for (const char* const text : {"", "GB", "5 GB", "-1", "0", "1e3", "nan", "5XB", "99999999TB"}) {
    EXPECT_FALSE(ParseByteSize("--size", text).ok()) << text;
  }
  EXPECT_EQ(ParseByteSize("--size", "5XB").status().message(),
            "--size 5XB: must be a size, such as 500MB or 2GiB");
}

}  // namespace
}  // namespace pace
