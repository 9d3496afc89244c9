#include "model/cpu/rope_table.h"

#include <algorithm>
#include <cmath>

namespace pace {

void RopeTable::Reserve(int64_t num_positions) {
  if (half() == 0) return;
  const int64_t have = static_cast<int64_t>(values_.size()) / (2 * half());
  if (num_positions <= have) return;
  // Doubles, so that a growing context costs little per token.
  const int64_t want = std::max({num_positions, 2 * have, int64_t{64}});
  values_.reserve(static_cast<size_t>(want * 2 * half()));
  for (int64_t position = have; position < want; ++position) {
    const auto at = static_cast<float>(position);
    for (const float frequency : frequencies_) values_.push_back(std::cos(at * frequency));
    for (const float frequency : frequencies_) values_.push_back(std::sin(at * frequency));
  }
}

}  // namespace pace
