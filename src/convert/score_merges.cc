#include "convert/score_merges.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "core/check.h"
#include "core/utf8.h"

namespace pace {
namespace {

// token[i] = token[i + period] throughout.
bool HasPeriod(std::string_view token, size_t period) {
  return token.substr(period) == token.substr(0, token.size() - period);
}

// Where a token can be cut in two tokens, in the order of their merges.
std::vector<size_t> Cuts(std::string_view token,
                         const std::unordered_set<std::string_view>& known) {
  std::vector<size_t> cuts;
  for (size_t at = ReadCodePoint(token, 0).num_bytes; at < token.size();
       at += ReadCodePoint(token, at).num_bytes) {
    if (known.contains(token.substr(0, at)) && known.contains(token.substr(at))) {
      cuts.push_back(at);
    }
  }
  std::reverse(cuts.begin(), cuts.end());
  // x + y = y + z where x is as long as z: cuts at |x| and at |y|. With
  // |x| < |y| the shorter left part must come first.
  for (auto longer = cuts.begin(); longer != cuts.end(); ++longer) {
    const size_t cut = token.size() - *longer;
    if (cut >= *longer || !HasPeriod(token, cut) || HasPeriod(token, *longer)) continue;
    const auto shorter = std::find(longer, cuts.end(), cut);
    if (shorter != cuts.end()) std::iter_swap(longer, shorter);
  }
  return cuts;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> MergesFromScores(
    std::span<const std::string> tokens, std::span<const float> scores) {
  PACE_CHECK(tokens.size() == scores.size(), tokens.size(), " tokens, ", scores.size(), " scores");
  const std::unordered_set<std::string_view> known(tokens.begin(), tokens.end());
  std::vector<size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  std::vector<std::pair<std::string, std::string>> merges;
  for (const size_t id : order) {
    const std::string_view token = tokens[id];
    if (token.empty()) continue;
    for (const size_t cut : Cuts(token, known)) {
      merges.emplace_back(token.substr(0, cut), token.substr(cut));
    }
  }
  return merges;
}

}  // namespace pace
