#include "core/status.h"

#include <gtest/gtest.h>

#include "core/decision.h"
#include "core/version.h"

namespace pace {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument("value = ", value, ": must be even");
  return value / 2;
}

TEST(StatusTest, CarriesOneLineAndItsPlace) {
  const Result<int> odd = Half(3);
  EXPECT_FALSE(odd.ok());
  EXPECT_EQ(odd.status().At("a.json:4").message(), "a.json:4: value = 3: must be even");
  EXPECT_EQ(Half(4).value(), 2);
}

struct Halves {
  int first = 0;
  int second = 0;
};

Result<Halves> BothHalves(int a, int b) {
  PACE_ASSIGN_OR_RETURN(const int first, Half(a));
  Halves halves{.first = first};
  PACE_ASSIGN_OR_RETURN(halves.second, Half(b));
  return halves;
}

TEST(StatusTest, AssignOrReturnTakesTheValueOrLeavesWithTheError) {
  EXPECT_EQ(BothHalves(2, 8).value().second, 4);
  EXPECT_EQ(BothHalves(1, 8).status().message(), "value = 1: must be even");
  EXPECT_EQ(BothHalves(2, 7).status().message(), "value = 7: must be even");
}

TEST(ConcatTest, PrintsDoublesThatReadBack) {
  EXPECT_EQ(Concat(0.1, " ", 1e300, " ", 3, " ", true, " ", PolicyVersion(7)),
            "0.1 1e+300 3 true 7");
}

TEST(CheckDeathTest, SaysWhereAndWhat) {
  EXPECT_DEATH(PACE_CHECK(1 > 2, "left = ", 1), "check failed: 1 > 2: left = 1");
}

TEST(DecisionTest, ReasonNamesReadBack) {
  for (int i = 0; i < kNumReasons; ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_EQ(ReasonFromName(Name(reason)), reason);
  }
  EXPECT_EQ(ReasonFromName("because"), std::nullopt);
}

}  // namespace
}  // namespace pace
