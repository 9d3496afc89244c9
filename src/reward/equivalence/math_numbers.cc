// Numbers as they are written in MathComparer: decimals, percents, bases.
#include <algorithm>
#include <cmath>

#include "reward/equivalence/math_comparer.h"

namespace pace::equiv {
namespace {

// A number under signs and percent signs.
struct WrittenNumber {
  const MathNode* node = nullptr;  // null where it is none
  bool negative = false;
  int num_percents = 0;

  bool IsDecimal() const { return node != nullptr && node->num_places > 0; }
  int NumPlaces() const { return static_cast<int>(node->num_places) + 2 * num_percents; }
  Rational Signed() const { return negative ? Negate(node->number) : node->number; }
};

WrittenNumber NumberIn(const MathNode& node) {
  WrittenNumber found;
  const MathNode* inside = &node;
  while (inside->kind == MathKind::kNegate || inside->kind == MathKind::kPercent) {
    found.negative ^= inside->kind == MathKind::kNegate;
    found.num_percents += inside->kind == MathKind::kPercent ? 1 : 0;
    inside = inside->args[0].get();
  }
  if (inside->kind == MathKind::kNumber) found.node = inside;
  return found;
}

// To how many places two numbers are compared, of which one at least is written with a
// point: to those written, but six at least, and no further than a double can tell.
int PlacesToCompare(const WrittenNumber& one, const WrittenNumber& other, long double size) {
  constexpr int kMinPlaces = 6;
  constexpr int kMaxDigits = 12;
  int places = kMaxDigits;
  if (one.IsDecimal()) places = std::min(places, one.NumPlaces());
  if (other.IsDecimal()) places = std::min(places, other.NumPlaces());
  const long double whole = size < 1 ? 0 : std::floor(std::log10(size)) + 1;
  const int told = kMaxDigits - static_cast<int>(std::min<long double>(whole, kMaxDigits));
  return std::max(kMinPlaces, std::min(places, told));
}

// value * 10^places with `shift` halves added, rounded down.
MaybeRational Scaled(const Rational& value, int places, int64_t halves) {
  const MaybeRational scale = Power(Rational(10), places);
  const MaybeRational scaled = scale ? Multiply(value, *scale) : std::nullopt;
  const MaybeRational half = Divide(Rational(halves), Rational(2));
  const MaybeRational raised = scaled && half ? Add(*scaled, *half) : std::nullopt;
  return raised ? MaybeRational(Floor(*raised)) : std::nullopt;
}

Rational Magnitude(const Rational& value) {
  return value.IsNegative() ? Negate(value) : value;
}

// Rounded they agree or, where more than six places are written, cut off.
bool AgreeToPlaces(long double a, long double b, int places) {
  if (AreClose(a, b)) return true;
  const long double scale = std::pow(10.0L, places);
  const bool rounded = std::floor(a * scale + 0.5L) == std::floor(b * scale + 0.5L);
  const bool cut = places > 6 && std::trunc(a * scale) == std::trunc(b * scale);
  return (rounded || cut) && std::abs(a - b) * 1000 <= std::max(std::abs(a), std::abs(b));
}

// Whether two numbers are written in different bases: 52_8 and 52_9.
bool AreInDifferentBases(const WrittenNumber& one, const WrittenNumber& other) {
  return one.node != nullptr && other.node != nullptr && !one.node->name.empty() &&
         !other.node->name.empty() && one.node->name != other.node->name;
}

// Six places tell nothing of numbers that have none of them.
bool IsNearEnough(const Rational& a, const Rational& b) {
  const MaybeRational difference = Subtract(a, b);
  const MaybeRational thousandfold =
      difference ? Multiply(*difference, Rational(difference->IsNegative() ? -1000 : 1000))
                 : std::nullopt;
  return thousandfold &&
         (!IsLess(Magnitude(a), *thousandfold) || !IsLess(Magnitude(b), *thousandfold));
}

bool AgreeToPlaces(const Rational& a, const Rational& b, int places) {
  if (!IsNearEnough(a, b)) return false;
  const MaybeRational rounded = Scaled(a, places, 1);
  if (rounded.has_value() && rounded == Scaled(b, places, 1)) return true;
  const MaybeRational cut = Scaled(Magnitude(a), places, 0);
  return places > 6 && cut.has_value() && cut == Scaled(Magnitude(b), places, 0);
}

// 28% and 28: one of them counts hundredths. Of 1 it could be either.
bool IsSameButForPercent(const WrittenNumber& one, const WrittenNumber& other) {
  if (one.node == nullptr || other.node == nullptr) return false;
  if (std::min(one.num_percents, other.num_percents) != 0) return false;
  if (std::max(one.num_percents, other.num_percents) != 1) return false;
  const Rational& number = one.node->number;
  return number.IsInteger() && Magnitude(number) != Rational(1) && one.Signed() == other.Signed();
}

}  // namespace

bool IsFalseEquation(const MathNode& node) {
  constexpr long double kRounding = 0.1L;
  if (!IsEquation(node)) return false;
  const WrittenNumber left = NumberIn(*node.args.front());
  const WrittenNumber right = NumberIn(*node.args.back());
  if (left.node == nullptr || right.node == nullptr) return false;
  const long double a = left.Signed().ToReal();
  const long double b = right.Signed().ToReal();
  if (left.num_percents != right.num_percents) return false;
  return std::abs(a - b) > kRounding * std::max(std::abs(a), std::abs(b));
}

// Rules for numbers as they are written; none where they do not apply.
std::optional<bool> MathComparer::CompareNumbers(const MathNodePtr& right,
                                                 const MathNodePtr& answer) {
  const WrittenNumber wanted = NumberIn(*right);
  const WrittenNumber given = NumberIn(*answer);
  if (AreInDifferentBases(wanted, given)) return false;
  if (!wanted.IsDecimal() && !given.IsDecimal()) {
    return IsSameButForPercent(wanted, given) ? std::optional<bool>(true) : std::nullopt;
  }
  const std::optional<long double> x = evaluator_.RealOf(right);
  const std::optional<long double> y = evaluator_.RealOf(answer);
  if (!x.has_value() || !y.has_value() || !std::isfinite(*x) || !std::isfinite(*y)) {
    return std::nullopt;
  }
  const int places = PlacesToCompare(wanted, given, std::max(std::abs(*x), std::abs(*y)));
  const MaybeRational& a = evaluator_.Of(right).exact;
  const MaybeRational& b = evaluator_.Of(answer).exact;
  if (a.has_value() && b.has_value()) return AgreeToPlaces(*a, *b, places);
  return AgreeToPlaces(*x, *y, places);
}

}  // namespace pace::equiv
