// + - * / // % ** ~ with Python's rules, integers within 64 bits; comparison, look-up, slices and
// calls.
#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/concat.h"
#include "core/printable.h"
#include "text/characters.h"
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

// The bound that Jinja's sandbox sets.
constexpr int64_t kMaxRange = 100'000;

Value LoopAttribute(const Loop& loop, const std::string& name) {
  if (loop.items == nullptr) return Value::MakeUndefined(name);
  const auto size = static_cast<int64_t>(loop.items->size());
  const auto at = static_cast<size_t>(loop.index);
  if (name == "index") return Value(loop.index + 1);
  if (name == "index0") return Value(loop.index);
  if (name == "first") return Value(loop.index == 0);
  if (name == "last") return Value(loop.index + 1 == size);
  if (name == "length") return Value(size);
  if (name == "revindex") return Value(size - loop.index);
  if (name == "revindex0") return Value(size - loop.index - 1);
  if (name == "depth") return Value(loop.depth);
  if (name == "depth0") return Value(loop.depth - 1);
  if (name == "previtem" && at > 0) return (*loop.items)[at - 1];
  if (name == "nextitem" && loop.index + 1 < size) return (*loop.items)[at + 1];
  return Value::MakeUndefined(name);
}

Value BoundMethod(const Value& self, const std::string& name) {
  auto method = std::make_shared<Method>();
  method->self = self;
  method->name = name;
  return Value::MakeObject(std::move(method));
}

struct Slice {
  int64_t begin;
  int64_t step;
  int64_t count;
};

// Python's rule for begin:end:step over `size` items.
Slice Resolve(const std::optional<int64_t>& begin, const std::optional<int64_t>& end, int64_t step,
              int64_t size) {
  const auto clamp = [&](int64_t index) {
    if (index < 0) index += size;
    const int64_t low = step < 0 ? -1 : 0;
    const int64_t high = step < 0 ? size - 1 : size;
    return std::clamp(index, low, std::max(low, high));
  };
  const int64_t first =
      begin.has_value() ? clamp(std::max(*begin, -size - 1)) : (step < 0 ? size - 1 : 0);
  const int64_t last = end.has_value() ? clamp(std::max(*end, -size - 1)) : (step < 0 ? -1 : size);
  const int64_t distance = step < 0 ? first - last : last - first;
  const int64_t stride = step < 0 ? -step : step;
  return {first, step, distance <= 0 ? 0 : (distance + stride - 1) / stride};
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

bool Evaluator::Equal(const Value& left, const Value& right) {
  Charge(0);
  if (IsNumber(left) && IsNumber(right)) return NumberOf(left) == NumberOf(right);
  if (left.is_text() && right.is_text()) return left.text() == right.text();
  if (left.is_big_integer() && right.is_big_integer()) return left.digits() == right.digits();
  if (left.is_list() && right.is_list()) {
    if (&left.list() == &right.list()) return true;
    if (left.list().size() != right.list().size() || left.is_tuple() != right.is_tuple())
      return false;
    for (size_t i = 0; i < left.list().size(); ++i) {
      if (!Equal(left.list()[i], right.list()[i])) return false;
    }
    return true;
  }
  if (left.is_dict() && right.is_dict()) {
    if (left.dict().entries().size() != right.dict().entries().size()) return false;
    for (const auto& [key, value] : left.dict().entries()) {
      const Value* other = right.dict().Find(key);
      if (other == nullptr || !Equal(value, *other)) return false;
    }
    return true;
  }
  if (left.is_object() && right.is_object()) return left.object() == right.object();
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

bool Evaluator::Less(const Value& left, const Value& right) {
  Charge(0);
  if (left.is_integer() && right.is_integer()) return left.integer() < right.integer();
  if (IsNumber(left) && IsNumber(right)) return NumberOf(left) < NumberOf(right);
  if (left.is_text() && right.is_text()) return left.text() < right.text();
  if (left.is_list() && right.is_list() && left.is_tuple() == right.is_tuple()) {
    const size_t size = std::min(left.list().size(), right.list().size());
    for (size_t i = 0; i < size; ++i) {
      if (!Equal(left.list()[i], right.list()[i])) return Less(left.list()[i], right.list()[i]);
    }
    return left.list().size() < right.list().size();
  }
  Fail(Concat("'", left.TypeName(), "' and '", right.TypeName(), "' have no order"));
}

bool Evaluator::Contains(const Value& container, const Value& item) {
  if (container.is_text()) {
    if (!item.is_text()) Fail(Concat("'in' a string needs a string, not '", item.TypeName(), "'"));
    ChargeSearch(container.text(), item.text());
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is_dict()) return item.is_text() && container.dict().Find(item.text()) != nullptr;
  if (container.is_list()) {
    for (const Value& entry : container.list()) {
      if (Equal(entry, item)) return true;
    }
    return false;
  }
  if (container.is_undefined()) return false;
  Fail(Concat("'in' needs something to look in, not '", container.TypeName(), "'"));
}

Value Evaluator::AttributeOf(const Value& value, const std::string& name) {
  if (value.is_undefined()) Fail(Concat("'", Printable(value.undefined_name()), "' is undefined"));
  if (value.is_object()) {
    if (const auto* loop = dynamic_cast<Loop*>(value.object())) {
      if (name == "cycle" || name == "changed") Fail(Concat("loop.", name, " is not supported"));
      return LoopAttribute(*loop, name);
    }
    if (const auto* space = dynamic_cast<Namespace*>(value.object())) {
      const Value* member = space->members.Find(name);
      return member == nullptr ? Value::MakeUndefined(name) : *member;
    }
    return Value::MakeUndefined(name);
  }
  if (HasMethod(value, name)) return BoundMethod(value, name);
  if (value.is_dict()) {
    if (const Value* member = value.dict().Find(name)) return *member;
  }
  return Value::MakeUndefined(name);
}

Value Evaluator::ItemOf(const Value& value, const Value& key) {
  if (value.is_undefined()) Fail(Concat("'", Printable(value.undefined_name()), "' is undefined"));
  if (key.is_text()) {
    const Value* member = value.is_dict() ? value.dict().Find(key.text()) : nullptr;
    return member != nullptr ? *member : AttributeOf(value, key.text());
  }
  const bool indexed = key.is_integer() || key.is_bool();
  if (!indexed || (!value.is_list() && !value.is_text())) return Value::MakeUndefined("item");
  int64_t index = key.is_bool() ? key.boolean() : key.integer();
  if (value.is_text()) Charge(value.text().size());
  const auto size =
      static_cast<int64_t>(value.is_list() ? value.list().size() : CountCodePoints(value.text()));
  if (index < 0) index += size;
  if (index < 0 || index >= size) return Value::MakeUndefined("item");
  if (value.is_list()) return value.list()[static_cast<size_t>(index)];
  const size_t at = OffsetOfCodePoint(value.text(), static_cast<size_t>(index));
  return Value(value.text().substr(at, ReadCodePoint(value.text(), at).num_bytes));
}

Value Evaluator::EvaluateSlice(const Expression& node) {
  const Value object = Evaluate(*node.parts[0]);
  std::optional<int64_t> bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (node.parts[i + 1] == nullptr) continue;
    const Value bound = Evaluate(*node.parts[i + 1]);
    if (bound.is_none()) continue;
    if (!bound.is_integer()) Fail("the parts of a slice must be integers");
    bounds[i] = std::clamp<int64_t>(bound.integer(), -(int64_t{1} << 40), int64_t{1} << 40);
  }
  position_ = node.position;
  if (bounds[2] == 0) Fail("the step of a slice must not be 0");
  if (!object.is_list() && !object.is_text()) {
    Fail(Concat("a slice of '", object.TypeName(), "' is not supported"));
  }
  const ValueList items = ItemsOf(object);
  const Slice slice =
      Resolve(bounds[0], bounds[1], bounds[2].value_or(1), static_cast<int64_t>(items.size()));
  ValueList kept;
  for (int64_t i = 0; i < slice.count; ++i) {
    kept.push_back(items[static_cast<size_t>(slice.begin + i * slice.step)]);
  }
  if (object.is_list()) return MakeList(std::move(kept), object.is_tuple());
  std::string text;
  for (const Value& character : kept) text += character.text();
  return Value(std::move(text));
}

Value Evaluator::EvaluateCall(const Expression& node) {
  const Value callee = Evaluate(*node.parts[0]);
  const Arguments arguments = EvaluateArguments(node.arguments);
  position_ = node.position;
  if (callee.is_undefined())
    Fail(Concat("'", Printable(callee.undefined_name()), "' is undefined"));
  if (!callee.is_object()) Fail(Concat("'", callee.TypeName(), "' cannot be called"));
  if (const auto* method = dynamic_cast<Method*>(callee.object())) {
    return CallMethod(*this, method->self, method->name, arguments);
  }
  if (const auto* builtin = dynamic_cast<Builtin*>(callee.object())) {
    return CallBuiltin(builtin->name, arguments);
  }
  if (const auto* macro = dynamic_cast<Macro*>(callee.object()))
    return CallMacro(*macro, arguments);
  Fail("this object cannot be called");
}

// A macro sees what is set at the top of the template, and its arguments.
Value Evaluator::CallMacro(const Macro& macro, const Arguments& arguments) {
  const Statement& definition = *macro.definition;
  const std::vector<std::string>& names = definition.targets;
  if (arguments.positional.size() > names.size()) {
    Fail(Concat("macro '", definition.text, "' takes ", names.size(), " arguments"));
  }
  for (const auto& [name, value] : arguments.named) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      Fail(Concat("macro '", definition.text, "' has no argument '", name, "'"));
    }
  }
  std::vector<Scope> outer = std::move(scopes_);
  scopes_.clear();
  scopes_.push_back(std::move(outer.front()));
  scopes_.emplace_back();
  for (size_t i = 0; i < names.size(); ++i) {
    const Value* given = arguments.Find(i, names[i]);
    Value value = Value::MakeUndefined(names[i]);
    if (given != nullptr) {
      value = *given;
    } else if (definition.defaults[i] != nullptr) {
      value = Evaluate(*definition.defaults[i]);
    }
    scopes_.back()[names[i]] = std::move(value);
  }
  std::string text = Capture(definition.body);
  outer.front() = std::move(scopes_.front());
  scopes_ = std::move(outer);
  return Value(std::move(text));
}

Value Evaluator::CallBuiltin(const std::string& name, const Arguments& arguments) {
  const std::vector<Value>& given = arguments.positional;
  if (name == "raise_exception") Fail(given.empty() ? "" : TextOf(given[0]));
  if (name == "namespace") {
    auto space = std::make_shared<Namespace>();
    for (const auto& [key, value] : arguments.named) {
      if (value.is_object()) Fail("an object inside a namespace is not supported");
      space->members.Put(key, value);
    }
    return Value::MakeObject(std::move(space));
  }
  if (name == "dict") {
    ValueDict dict;
    for (const auto& [key, value] : arguments.named) dict.Put(key, value);
    return MakeDict(std::move(dict));
  }
  if (name == "strftime_now") {
    if (given.size() != 1 || !given[0].is_text()) Fail("strftime_now needs a format");
    const std::time_t seconds = now_->time_since_epoch().count();
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char buffer[256];
    const size_t size = std::strftime(buffer, sizeof(buffer), given[0].text().c_str(), &parts);
    return Value(std::string(buffer, size));
  }
  int64_t bounds[3] = {0, 0, 1};
  if (given.empty() || given.size() > 3) Fail("range takes one to three integers");
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_integer()) Fail("range takes integers");
    bounds[given.size() == 1 ? 1 : i] =
        std::clamp<int64_t>(given[i].integer(), -(int64_t{1} << 40), int64_t{1} << 40);
  }
  if (bounds[2] == 0) Fail("the step of range must not be 0");
  ValueList items;
  for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1]; i += bounds[2]) {
    if (items.size() >= kMaxRange) Fail(Concat("a range of more than ", kMaxRange));
    items.emplace_back(i);
  }
  return MakeList(std::move(items));
}

}  // namespace pace::jinja
