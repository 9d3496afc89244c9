// + - * / // % ** ~ with Python's rules; integers stay within 64 bits.
#include <algorithm>
#include <cmath>

#include "core/concat.h"
#include "text/jinja/evaluator.h"

namespace pace::jinja {
namespace {

bool IsWhole(const Value& value) {
  return value.is_integer() || value.is_bool();
}
bool IsNumber(const Value& value) {
  return IsWhole(value) || value.is_real();
}
int64_t WholeOf(const Value& value) {
  return value.is_bool() ? (value.boolean() ? 1 : 0) : value.integer();
}
double NumberOf(const Value& value) {
  return value.is_real() ? value.real() : static_cast<double>(WholeOf(value));
}

Value Power(Evaluator& evaluator, int64_t base, int64_t exponent) {
  if (exponent < 0)
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t result = 1;
  for (int64_t i = 0; i < exponent && base != 1 && result != 0; ++i) {
    evaluator.Charge(0);
    if (__builtin_mul_overflow(result, base, &result)) evaluator.Fail("an integer beyond 64 bits");
  }
  return Value(result);
}

Value WholeArithmetic(Evaluator& evaluator, const std::string& sign, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflow = false;
  if (sign == "+") {
    overflow = __builtin_add_overflow(a, b, &out);
  } else if (sign == "-") {
    overflow = __builtin_sub_overflow(a, b, &out);
  } else if (sign == "*") {
    overflow = __builtin_mul_overflow(a, b, &out);
  } else if (sign == "**") {
    return Power(evaluator, a, b);
  } else {
    if (b == 0) evaluator.Fail("division by zero");
    if (sign == "/") return Value(static_cast<double>(a) / static_cast<double>(b));
    if (b == -1) {
      overflow = sign == "//" && __builtin_sub_overflow(int64_t{0}, a, &out);
    } else {
      // Python rounds down.
      const int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      out = sign == "//" ? quotient : a - quotient * b;
    }
  }
  if (overflow) evaluator.Fail("an integer beyond 64 bits");
  return Value(out);
}

Value RealArithmetic(Evaluator& evaluator, const std::string& sign, double a, double b) {
  if (sign == "+") return Value(a + b);
  if (sign == "-") return Value(a - b);
  if (sign == "*") return Value(a * b);
  if (sign == "**") return Value(std::pow(a, b));
  if (b == 0) evaluator.Fail("division by zero");
  if (sign == "/") return Value(a / b);
  const double quotient = std::floor(a / b);
  return Value(sign == "//" ? quotient : a - quotient * b);
}

Value Repeat(Evaluator& evaluator, const Value& what, int64_t times) {
  const size_t size = what.is_text() ? what.text().size() : what.list().size() * sizeof(Value);
  times = std::max<int64_t>(times, 0);
  if (size > 0 && times > (int64_t{1} << 32)) evaluator.Fail("the template does too much work");
  evaluator.Charge(size * static_cast<size_t>(size > 0 ? times : 0));
  std::string text;
  ValueList items;
  for (int64_t i = 0; size > 0 && i < times; ++i) {
    if (what.is_text()) {
      text += what.text();
    } else {
      items.insert(items.end(), what.list().begin(), what.list().end());
    }
  }
  return what.is_text() ? Value(std::move(text))
                        : evaluator.MakeList(std::move(items), what.is_tuple());
}

}  // namespace

Value Arithmetic(Evaluator& evaluator, const std::string& sign, const Value& left,
                 const Value& right) {
  if (sign == "~") {
    std::string text = evaluator.TextOf(left);
    text += evaluator.TextOf(right);
    evaluator.Charge(text.size());
    return Value(std::move(text));
  }
  for (const Value* side : {&left, &right}) {
    if (side->is_undefined()) evaluator.Fail(Concat("'", side->undefined_name(), "' is undefined"));
  }
  if (sign == "+" && left.is_text() && right.is_text()) {
    evaluator.Charge(left.text().size() + right.text().size());
    return Value(left.text() + right.text());
  }
  if (sign == "+" && left.is_list() && right.is_list() && left.is_tuple() == right.is_tuple()) {
    ValueList items = left.list();
    items.insert(items.end(), right.list().begin(), right.list().end());
    return evaluator.MakeList(std::move(items), left.is_tuple());
  }
  const auto repeats = [](const Value& value) { return value.is_text() || value.is_list(); };
  if (sign == "*" && repeats(left) && IsWhole(right))
    return Repeat(evaluator, left, WholeOf(right));
  if (sign == "*" && repeats(right) && IsWhole(left))
    return Repeat(evaluator, right, WholeOf(left));
  if (IsWhole(left) && IsWhole(right)) {
    return WholeArithmetic(evaluator, sign, WholeOf(left), WholeOf(right));
  }
  if (IsNumber(left) && IsNumber(right)) {
    return RealArithmetic(evaluator, sign, NumberOf(left), NumberOf(right));
  }
  evaluator.Fail(Concat("'", sign, "' is not supported between '", left.TypeName(), "' and '",
                        right.TypeName(), "'"));
}

}  // namespace pace::jinja
