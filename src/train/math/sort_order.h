// The order in which tokens and sequences are sorted by a number.
//
// It is total: equal numbers stand by index, so that every machine and library
// sorts alike, and a NaN has a place, so that a diverged network cannot break
// std::sort.
//
//   std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
//     return LargerFirst({rewards[a], a}, {rewards[b], b});
//   });
#ifndef PACE_TRAIN_MATH_SORT_ORDER_H_
#define PACE_TRAIN_MATH_SORT_ORDER_H_

#include <compare>
#include <cstddef>

namespace pace {

struct SortKey {
  double value = 0;
  size_t index = 0;
};

inline bool LargerFirst(const SortKey& a, const SortKey& b) {
  // Adding 0 makes -0 and 0 one number.
  const std::strong_ordering order = std::strong_order(a.value + 0.0, b.value + 0.0);
  return order != 0 ? order > 0 : a.index < b.index;
}

}  // namespace pace

#endif  // PACE_TRAIN_MATH_SORT_ORDER_H_
