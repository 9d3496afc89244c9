#include "reward/equivalence/real_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reward/equivalence/math_evaluator.h"

namespace pace::equiv {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

bool IsSameEnd(long double a, long double b) {
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return AreClose(a, b);
}

bool IsEmpty(const RealInterval& piece) {
  if (IsSameEnd(piece.low, piece.high)) {
    return piece.low_open || piece.high_open || std::isinf(piece.low);
  }
  return !(piece.low < piece.high);
}

// By the exact ends: a rounded order would be none.
bool BeginsBefore(const RealInterval& a, const RealInterval& b) {
  if (a.low != b.low) return a.low < b.low;
  return !a.low_open && b.low_open;
}

// Whether no point lies between the end of `a` and the beginning of `b`.
bool Touches(const RealInterval& a, const RealInterval& b) {
  if (IsSameEnd(a.high, b.low)) return !a.high_open || !b.low_open;
  return b.low < a.high;
}

}  // namespace

RealSet::RealSet(std::vector<RealInterval> pieces) {
  for (RealInterval& piece : pieces) {
    piece.low_open |= std::isinf(piece.low);
    piece.high_open |= std::isinf(piece.high);
  }
  std::erase_if(pieces, IsEmpty);
  std::sort(pieces.begin(), pieces.end(), BeginsBefore);
  for (const RealInterval& piece : pieces) {
    if (pieces_.empty() || !Touches(pieces_.back(), piece)) {
      pieces_.push_back(piece);
      continue;
    }
    RealInterval& last = pieces_.back();
    if (IsSameEnd(last.low, piece.low)) last.low_open = last.low_open && piece.low_open;
    if (IsSameEnd(last.high, piece.high)) {
      last.high_open = last.high_open && piece.high_open;
    } else if (last.high < piece.high) {
      last.high = piece.high;
      last.high_open = piece.high_open;
    }
  }
}

RealSet RealSet::Everything() {
  return RealSet({{-kInfinity, kInfinity, true, true}});
}

RealSet RealSet::Point(long double value) {
  return RealSet({{value, value, false, false}});
}

RealSet RealSet::Union(const RealSet& other) const {
  std::vector<RealInterval> pieces = pieces_;
  pieces.insert(pieces.end(), other.pieces_.begin(), other.pieces_.end());
  return RealSet(std::move(pieces));
}

RealSet RealSet::Complement() const {
  std::vector<RealInterval> gaps;
  long double low = -kInfinity;
  bool low_open = true;
  for (const RealInterval& piece : pieces_) {
    gaps.push_back({low, piece.low, low_open, !piece.low_open});
    low = piece.high;
    low_open = !piece.high_open;
  }
  gaps.push_back({low, kInfinity, low_open, true});
  return RealSet(std::move(gaps));
}

RealSet RealSet::Intersection(const RealSet& other) const {
  return Complement().Union(other.Complement()).Complement();
}

bool RealSet::IsSame(const RealSet& other) const {
  return std::equal(pieces_.begin(), pieces_.end(), other.pieces_.begin(), other.pieces_.end(),
                    [](const RealInterval& a, const RealInterval& b) {
                      return IsSameEnd(a.low, b.low) && IsSameEnd(a.high, b.high) &&
                             a.low_open == b.low_open && a.high_open == b.high_open;
                    });
}

}  // namespace pace::equiv
