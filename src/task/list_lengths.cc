#include "task/list_lengths.h"

#include <algorithm>

#include "core/concat.h"
#include "core/exact_math.h"

namespace pace {

ListLengths::ListLengths(const TaskOptions& options) : min_numbers_(options.min_numbers) {
  double total = 0;
  for (int64_t kind = 0; kind <= options.max_numbers - options.min_numbers; ++kind) {
    total += exact::Exp(-static_cast<double>(kind) / options.length_scale);
    cumulative_.push_back(total);
  }
  for (double& share : cumulative_) share /= total;
}

int64_t ListLengths::KindAt(double u) const {
  const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
  return std::min<int64_t>(at - cumulative_.begin(), num_kinds() - 1);
}

std::string ListLengths::Describe(int64_t kind) const {
  return Concat("lists of ", NumbersOf(kind), " numbers");
}

}  // namespace pace
