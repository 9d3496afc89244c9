#include "formats/rope_rows.h"

#include <algorithm>

#include "core/check.h"

namespace pace {
namespace {

// Calls visit(row in halves, row in interleaved, copy) for every row.
template <typename Visit>
std::vector<float> Reorder(std::span<const float> rows, int64_t num_heads, int64_t head_dim,
                           Visit visit) {
  PACE_CHECK(num_heads > 0 && head_dim > 0 && head_dim % 2 == 0, "heads = ", num_heads,
             ", head_dim = ", head_dim);
  const auto num_rows = static_cast<size_t>(num_heads * head_dim);
  PACE_CHECK(rows.size() % num_rows == 0, "values = ", rows.size(), ", rows = ", num_rows);
  const size_t length = rows.size() / num_rows;
  const auto half = static_cast<size_t>(head_dim / 2);
  std::vector<float> out(rows.size());
  const auto copy = [&](size_t from, size_t to) {
    std::copy_n(rows.data() + from * length, length, out.data() + to * length);
  };
  for (size_t first = 0; first < num_rows; first += 2 * half) {
    for (size_t i = 0; i < half; ++i) {
      for (size_t j = 0; j < 2; ++j) visit(first + j * half + i, first + 2 * i + j, copy);
    }
  }
  return out;
}

}  // namespace

std::vector<float> InterleavedToHalves(std::span<const float> rows, int64_t num_heads,
                                       int64_t head_dim) {
  return Reorder(
      rows, num_heads, head_dim,
      [](size_t halves, size_t interleaved, const auto& copy) { copy(interleaved, halves); });
}

std::vector<float> HalvesToInterleaved(std::span<const float> rows, int64_t num_heads,
                                       int64_t head_dim) {
  return Reorder(
      rows, num_heads, head_dim,
      [](size_t halves, size_t interleaved, const auto& copy) { copy(halves, interleaved); });
}

}  // namespace pace
