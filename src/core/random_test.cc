#include "core/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pace {
namespace {

using Block = std::array<uint32_t, 4>;

// The known answers published with the Random123 library.
TEST(PhiloxTest, MatchesTheKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRandomTest, DependsOnSeedStreamAndIndexOnly) {
  const CounterRandom a(7, 1);
  EXPECT_EQ(a.Bits(3, 4), CounterRandom(7, 1).Bits(3, 4));
  EXPECT_NE(a.Bits(3, 4), CounterRandom(8, 1).Bits(3, 4));
  EXPECT_NE(a.Bits(3, 4), CounterRandom(7, 2).Bits(3, 4));
  EXPECT_NE(a.Bits(3, 4), a.Bits(4, 4));
  EXPECT_NE(a.Bits(3, 4), a.Bits(3, 5));
  EXPECT_NE(a.Bits(3, 4), a.Bits(3 + (uint64_t{1} << 32), 4));
}

TEST(CounterRandomTest, MomentsAreThoseOfTheDistributions) {
  const CounterRandom random(1, 0);
  constexpr int kDraws = 200000;
  double uniform = 0, normal = 0, normal_square = 0, exponential = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto a = static_cast<uint64_t>(i);
    const double u = random.Uniform(a, 0);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u;
    const double z = random.Normal(a, 1);
    normal += z;
    normal_square += z * z;
    exponential += random.Exponential(a, 2);
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.005);
  EXPECT_NEAR(normal / kDraws, 0.0, 0.01);
  EXPECT_NEAR(normal_square / kDraws, 1.0, 0.02);
  EXPECT_NEAR(exponential / kDraws, 1.0, 0.01);
}

}  // namespace
}  // namespace pace
