// RealSet: a union of intervals and points on the real line.
//
// Pieces are kept sorted, apart and as long as possible, so that two sets are
// the same when their pieces are.
//
// Thread-safety: values.
#ifndef PACE_REWARD_EQUIVALENCE_REAL_SET_H_
#define PACE_REWARD_EQUIVALENCE_REAL_SET_H_

#include <vector>

namespace pace::equiv {

struct RealInterval {
  long double low = 0;   // may be minus infinity
  long double high = 0;  // may be infinity
  bool low_open = false;
  bool high_open = false;
};

class RealSet {
 public:
  RealSet() = default;
  // Any intervals, in any order; empty ones are dropped.
  explicit RealSet(std::vector<RealInterval> pieces);

  static RealSet Everything();
  static RealSet Point(long double value);

  const std::vector<RealInterval>& pieces() const { return pieces_; }

  RealSet Union(const RealSet& other) const;
  RealSet Intersection(const RealSet& other) const;
  RealSet Complement() const;

  // The same but for rounding of the ends.
  bool IsSame(const RealSet& other) const;

 private:
  std::vector<RealInterval> pieces_;
};

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_REAL_SET_H_
