#include "reward/equivalence/real_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"

namespace pace::equiv {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

bool Holds(const RealSet& set, long double x) {
  for (const RealInterval& piece : set.pieces()) {
    const bool above = piece.low_open ? x > piece.low : x >= piece.low;
    const bool below = piece.high_open ? x < piece.high : x <= piece.high;
    if (above && below) return true;
  }
  return false;
}

RealSet RandomSet(const CounterRandom& random, uint64_t trial, uint64_t which) {
  std::vector<RealInterval> pieces;
  const uint64_t num_pieces = random.Bits(trial, which * 50) % 4;
  for (uint64_t i = 0; i < num_pieces; ++i) {
    const uint64_t bits = random.Bits(trial, which * 50 + 1 + i);
    const auto low = static_cast<long double>(bits % 8);
    const auto length = static_cast<long double>(bits / 8 % 4);
    pieces.push_back({bits % 97 == 0 ? -kInfinity : low, bits % 89 == 0 ? kInfinity : low + length,
                      bits / 64 % 2 == 0, bits / 128 % 2 == 0});
  }
  return RealSet(std::move(pieces));
}

// Against membership, at whole numbers, where ends are, and between them.
TEST(RealSetTest, OperationsAgreeWithMembership) {
  const CounterRandom random(7, 1);
  for (uint64_t trial = 0; trial < 2000; ++trial) {
    const RealSet a = RandomSet(random, trial, 0);
    const RealSet b = RandomSet(random, trial, 1);
    const RealSet both = a.Intersection(b);
    const RealSet either = a.Union(b);
    const RealSet rest = a.Complement();
    for (long double x = -1; x <= 13; x += 0.5L) {
      EXPECT_EQ(Holds(either, x), Holds(a, x) || Holds(b, x));
      EXPECT_EQ(Holds(both, x), Holds(a, x) && Holds(b, x));
      EXPECT_NE(Holds(rest, x), Holds(a, x));
    }
    EXPECT_TRUE(rest.Complement().IsSame(a));
    EXPECT_TRUE(either.IsSame(b.Union(a)));
  }
}

TEST(RealSetTest, TouchingPiecesBecomeOne) {
  const RealSet joined({{0, 1, false, true}, {1, 2, false, false}});
  EXPECT_EQ(joined.pieces().size(), 1u);
  const RealSet apart({{0, 1, false, true}, {1, 2, true, false}});
  EXPECT_EQ(apart.pieces().size(), 2u);
  EXPECT_FALSE(joined.IsSame(apart));
  EXPECT_TRUE(apart.Union(RealSet::Point(1)).IsSame(joined));
}

TEST(RealSetTest, TheWholeLineAndNothing) {
  EXPECT_TRUE(RealSet::Everything().Complement().pieces().empty());
  EXPECT_TRUE(RealSet().Complement().IsSame(RealSet::Everything()));
  EXPECT_TRUE(RealSet({{1, 1, true, false}}).pieces().empty());
  EXPECT_TRUE(RealSet({{2, 1, false, false}}).pieces().empty());
}

TEST(RealSetTest, EndsAreComparedButForRounding) {
  const long double root = std::sqrt(2.0L);
  EXPECT_TRUE(RealSet({{0, root * root, false, false}}).IsSame(RealSet({{0, 2, false, false}})));
  EXPECT_FALSE(RealSet({{0, 2.001L, false, false}}).IsSame(RealSet({{0, 2, false, false}})));
}

}  // namespace
}  // namespace pace::equiv
