#include "reward/dapo_integer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/utf8.h"
#include "reward/dapo.h"
#include "reward/python_characters.h"

namespace pace {
namespace {

constexpr uint32_t kMinusSign = 0x2212;

// Lengths of the runs of digits between commas: one run of any length, or one
// to three digits and then threes.
bool AreGroupsOfThree(const std::vector<size_t>& runs) {
  if (runs.size() == 1) return runs[0] > 0;
  if (runs[0] < 1 || runs[0] > 3) return false;
  return std::all_of(runs.begin() + 1, runs.end(), [](size_t length) { return length == 3; });
}

}  // namespace

std::optional<std::string> CanonicalInteger(std::string_view text) {
  if (text.empty()) return std::nullopt;
  bool negative = false;
  const CodePoint sign = ReadCodePoint(text, 0);
  if (sign.code == '+' || sign.code == '-' || sign.code == kMinusSign) {
    negative = sign.code != '+';
    text.remove_prefix(sign.num_bytes);
  }
  std::string digits;
  std::vector<size_t> runs = {0};
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    at += point.num_bytes;
    if (point.code == ',') {
      runs.push_back(0);
      continue;
    }
    const std::optional<int> value = DecimalDigitValue(point.code);
    if (!value.has_value()) return std::nullopt;
    digits += static_cast<char>('0' + *value);
    ++runs.back();
  }
  if (!AreGroupsOfThree(runs)) return std::nullopt;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return negative && digits != "0" ? "-" + digits : digits;
}

Verification VerifyDapoInteger(std::string_view response, std::string_view answer) {
  std::string extracted = NormalizeDapo(ExtractDapo(response));
  const std::string wanted = NormalizeDapo(answer);
  if (extracted == wanted) return Signed(true, std::move(extracted));
  const std::optional<std::string> ours = CanonicalInteger(extracted);
  const std::optional<std::string> right = ours.has_value() ? CanonicalInteger(wanted) : ours;
  const bool correct = ours.has_value() && ours == right;
  return Signed(correct, std::move(extracted));
}

}  // namespace pace
