#include "train/packing.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace pace {

namespace {

std::vector<size_t> LongestFirst(std::span<const int64_t> lengths) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
  });
  return order;
}

}  // namespace

std::vector<std::vector<size_t>> PackSequences(std::span<const int64_t> lengths,
                                               int64_t token_budget) {
  PACE_CHECK(token_budget > 0, "token_budget = ", token_budget);
  std::vector<std::vector<size_t>> bins;
  std::vector<int64_t> room;
  for (const size_t sequence : LongestFirst(lengths)) {
    PACE_CHECK(lengths[sequence] > 0, "length = ", lengths[sequence]);
    size_t bin = 0;
    while (bin < bins.size() && room[bin] < lengths[sequence]) ++bin;
    if (bin == bins.size()) {
      bins.emplace_back();
      room.push_back(token_budget);
    }
    bins[bin].push_back(sequence);
    room[bin] -= lengths[sequence];
  }
  for (std::vector<size_t>& bin : bins) std::sort(bin.begin(), bin.end());
  std::sort(bins.begin(), bins.end(),
            [](const auto& a, const auto& b) { return a.front() < b.front(); });
  return bins;
}

std::vector<std::vector<size_t>> ShareSequences(std::span<const int64_t> lengths, int64_t count) {
  PACE_CHECK(count > 0, "count = ", count);
  std::vector<std::vector<size_t>> shares(
      std::min(static_cast<size_t>(count), std::max<size_t>(lengths.size(), 1)));
  std::vector<int64_t> tokens(shares.size());
  for (const size_t sequence : LongestFirst(lengths)) {
    const auto least =
        static_cast<size_t>(std::min_element(tokens.begin(), tokens.end()) - tokens.begin());
    shares[least].push_back(sequence);
    tokens[least] += lengths[sequence];
  }
  for (std::vector<size_t>& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

}  // namespace pace
