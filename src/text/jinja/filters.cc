// Filters: value|name(arguments).
#include <algorithm>
#include <cmath>

#include "core/concat.h"
#include "core/printable.h"
#include "text/characters.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/strings.h"
#include "text/python_text.h"

namespace pace::jinja {
namespace {

Value ToJson(Evaluator& evaluator, const Value& input, const Arguments& arguments) {
  JsonStyle style;
  const auto flag = [&](size_t index, std::string_view name, bool otherwise) {
    const Value* given = arguments.Find(index, name);
    return given == nullptr ? otherwise : given->Truthy();
  };
  style.ensure_ascii = flag(0, "ensure_ascii", false);
  const Value* indent = arguments.Find(1, "indent");
  if (indent != nullptr && indent->is_integer()) {
    if (indent->integer() > 100) evaluator.Fail("tojson: indent must be at most 100");
    style.indent = std::string(static_cast<size_t>(std::max<int64_t>(indent->integer(), 0)), ' ');
    style.item_separator = ",";
  } else if (indent != nullptr && indent->is_text()) {
    style.indent = indent->text();
    style.item_separator = ",";
  }
  const Value* separators = arguments.Find(2, "separators");
  if (separators != nullptr && !separators->is_none()) {
    const ValueList pair = evaluator.ItemsOf(*separators);
    if (pair.size() != 2 || !pair[0].is_text() || !pair[1].is_text()) {
      evaluator.Fail("tojson: separators must be two strings");
    }
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  style.sort_keys = flag(3, "sort_keys", false);
  Result<std::string> text = ToPythonJson(input, style);
  if (!text.ok()) evaluator.Fail(text.status().message());
  evaluator.Charge(text->size());
  return Value(std::move(text).value());
}

int64_t LengthOf(Evaluator& evaluator, const Value& input) {
  if (input.is_text()) {
    evaluator.Charge(input.text().size());
    return static_cast<int64_t>(CountCodePoints(input.text()));
  }
  if (input.is_list()) return static_cast<int64_t>(input.list().size());
  if (input.is_dict()) return static_cast<int64_t>(input.dict().entries().size());
  if (input.is_undefined()) return 0;
  evaluator.Fail(Concat("'", input.TypeName(), "' has no length"));
}

// A path such as "function.name" or 0.
Value MemberOf(Evaluator& evaluator, Value value, const Value& path) {
  if (!path.is_text()) return evaluator.ItemOf(value, path);
  for (const std::string& name : SplitText(path.text(), ".", -1, false)) {
    value = evaluator.ItemOf(value, Value(name));
  }
  return value;
}

Value MapItems(Evaluator& evaluator, const Value& input, const Arguments& arguments) {
  ValueList out;
  const Value* attribute = nullptr;
  const Value* otherwise = nullptr;
  for (const auto& [name, value] : arguments.named) {
    if (name == "attribute") attribute = &value;
    if (name == "default") otherwise = &value;
  }
  for (const Value& item : evaluator.ItemsOf(input)) {
    if (attribute != nullptr) {
      Value member = MemberOf(evaluator, item, *attribute);
      out.push_back(member.is_undefined() && otherwise != nullptr ? *otherwise : std::move(member));
      continue;
    }
    if (arguments.positional.empty() || !arguments.positional[0].is_text()) {
      evaluator.Fail("map needs attribute=... or the name of a filter");
    }
    Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
    out.push_back(evaluator.ApplyFilter(arguments.positional[0].text(), item, rest));
  }
  return evaluator.MakeList(std::move(out));
}

// select, reject, selectattr, rejectattr.
Value SelectItems(Evaluator& evaluator, const std::string& name, const Value& input,
                  const Arguments& arguments) {
  const bool by_attribute = name.ends_with("attr");
  const bool keeps = name.starts_with("select");
  const std::vector<Value>& given = arguments.positional;
  const size_t test = by_attribute ? 1 : 0;
  if (by_attribute && given.empty()) evaluator.Fail(Concat(name, " needs an attribute"));
  if (given.size() > test && !given[test].is_text()) evaluator.Fail(Concat(name, " needs a test"));
  ValueList out;
  for (const Value& item : evaluator.ItemsOf(input)) {
    const Value subject = by_attribute ? MemberOf(evaluator, item, given[0]) : item;
    bool holds = subject.Truthy();
    if (given.size() > test) {
      const Arguments rest{{given.begin() + static_cast<int64_t>(test) + 1, given.end()}, {}};
      holds = evaluator.ApplyTest(given[test].text(), subject, rest);
    }
    if (holds == keeps) out.push_back(item);
  }
  return evaluator.MakeList(std::move(out));
}

Value SortItems(Evaluator& evaluator, const Value& input, const Arguments& arguments) {
  ValueList items = evaluator.ItemsOf(input);
  const Value* reverse = arguments.Find(0, "reverse");
  const Value* case_sensitive = arguments.Find(1, "case_sensitive");
  const Value* attribute = arguments.Find(2, "attribute");
  const bool folds = case_sensitive == nullptr || !case_sensitive->Truthy();
  const bool descending = reverse != nullptr && reverse->Truthy();
  // Insertion by bisection: stable, and safe where values have no proper order.
  const auto before = [&](const auto& a, const auto& b) {
    return descending ? evaluator.Less(b.first, a.first) : evaluator.Less(a.first, b.first);
  };
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value key = attribute == nullptr ? item : MemberOf(evaluator, item, *attribute);
    if (folds && key.is_text()) key = Value(PythonLower(key.text()));
    std::pair<Value, Value> entry(std::move(key), std::move(item));
    const auto at = std::upper_bound(keyed.begin(), keyed.end(), entry, before);
    evaluator.Charge(static_cast<size_t>(keyed.end() - at));
    keyed.insert(at, std::move(entry));
  }
  items.clear();
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return evaluator.MakeList(std::move(items));
}

Value DictItems(Evaluator& evaluator, const std::string& name, const Value& input) {
  if (input.is_undefined()) return evaluator.MakeList({});
  if (!input.is_dict()) evaluator.Fail(Concat(name, " needs a dict"));
  ValueList pairs;
  for (const auto& [key, value] : input.dict().entries()) {
    pairs.push_back(evaluator.MakeList({Value(key), value}, true));
  }
  if (name == "dictsort") {
    std::sort(pairs.begin(), pairs.end(), [](const Value& a, const Value& b) {
      const std::string& x = a.list()[0].text();
      const std::string& y = b.list()[0].text();
      return std::pair(PythonLower(x), x) < std::pair(PythonLower(y), y);
    });
  }
  return evaluator.MakeList(std::move(pairs));
}

Value JoinItems(Evaluator& evaluator, const Value& input, const Arguments& arguments) {
  const Value* separator = arguments.Find(0, "d");
  const Value* attribute = arguments.Find(1, "attribute");
  const std::string between = separator == nullptr ? "" : evaluator.TextOf(*separator);
  std::string out;
  bool first = true;
  for (const Value& item : evaluator.ItemsOf(input)) {
    if (!first) out += between;
    first = false;
    out += evaluator.TextOf(attribute == nullptr ? item : MemberOf(evaluator, item, *attribute));
    evaluator.Charge(out.size() / 8 + between.size());
  }
  return Value(std::move(out));
}

Value Indent(Evaluator& evaluator, const Value& input, const Arguments& arguments) {
  const Value* width = arguments.Find(0, "width");
  const Value* first = arguments.Find(1, "first");
  const Value* blank = arguments.Find(2, "blank");
  std::string indent(4, ' ');
  if (width != nullptr && width->is_text()) indent = width->text();
  if (width != nullptr && width->is_integer()) {
    if (width->integer() > 1000) evaluator.Fail("indent must be at most 1000");
    indent.assign(static_cast<size_t>(std::max<int64_t>(width->integer(), 0)), ' ');
  }
  const std::vector<std::string> lines = SplitText(evaluator.TextOf(input), "\n", -1, false);
  evaluator.Charge(lines.size() * (indent.size() + 1));
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    const bool wanted = i > 0 ? !lines[i].empty() || (blank != nullptr && blank->Truthy())
                              : first != nullptr && first->Truthy();
    out += Concat(wanted ? indent : "", lines[i]);
  }
  return Value(std::move(out));
}

Value ToNumber(Evaluator& evaluator, const std::string& name, const Value& input,
               const Arguments& arguments) {
  const bool whole = name == "int";
  if (whole && (input.is_integer() || input.is_big_integer())) return input;
  double number = 0;
  bool valid = true;
  if (input.is_text()) {
    const Result<Value> read = ParsePythonJson(Strip(input.text(), std::nullopt, true, true));
    if (read.ok() && whole && read->is_integer()) return *read;
    valid = read.ok() && (read->is_integer() || read->is_real());
    if (valid) number = read->is_integer() ? static_cast<double>(read->integer()) : read->real();
  } else if (input.is_bool()) {
    number = input.boolean() ? 1 : 0;
  } else if (input.is_integer()) {
    number = static_cast<double>(input.integer());
  } else if (input.is_real()) {
    number = input.real();
  } else {
    valid = false;
  }
  if (!valid || (whole && !(std::abs(number) < 9e18))) {
    const Value* otherwise = arguments.Find(0, "default");
    if (otherwise != nullptr) return *otherwise;
    return whole ? Value(int64_t{0}) : Value(0.0);
  }
  static_cast<void>(evaluator);
  return whole ? Value(static_cast<int64_t>(number)) : Value(number);
}

Value FirstOrLast(Evaluator& evaluator, const std::string& name, const Value& input) {
  ValueList items = evaluator.ItemsOf(input);
  if (name == "first" || name == "last") {
    if (items.empty()) return Value::MakeUndefined(name);
    return name == "first" ? items.front() : items.back();
  }
  if (name == "min" || name == "max") {
    if (items.empty()) return Value::MakeUndefined(name);
    Value best = items[0];
    for (const Value& item : items) {
      if (name == "min" ? evaluator.Less(item, best) : evaluator.Less(best, item)) best = item;
    }
    return best;
  }
  if (name == "sum") {
    Value total(int64_t{0});
    for (const Value& item : items) total = Arithmetic(evaluator, "+", total, item);
    return total;
  }
  if (name == "reverse") {
    std::reverse(items.begin(), items.end());
    if (input.is_text()) {
      std::string text;
      for (const Value& item : items) text += item.text();
      return Value(std::move(text));
    }
  }
  if (name == "unique") {
    ValueList kept;
    for (const Value& item : items) {
      const bool seen = std::any_of(kept.begin(), kept.end(), [&](const Value& other) {
        return evaluator.Equal(item, other);
      });
      if (!seen) kept.push_back(item);
    }
    items = std::move(kept);
  }
  return evaluator.MakeList(std::move(items));
}

}  // namespace

Value Evaluator::ApplyFilter(const std::string& name, const Value& input,
                             const Arguments& arguments) {
  Charge(0);
  if (name == "tojson") return ToJson(*this, input, arguments);
  if (name == "length" || name == "count") return Value(LengthOf(*this, input));
  if (name == "default" || name == "d") {
    const Value* otherwise = arguments.Find(0, "default_value");
    const Value* falsy = arguments.Find(1, "boolean");
    const bool missing =
        input.is_undefined() || (falsy != nullptr && falsy->Truthy() && !input.Truthy());
    if (!missing) return input;
    return otherwise == nullptr ? Value(std::string()) : *otherwise;
  }
  if (name == "map") return MapItems(*this, input, arguments);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr") {
    return SelectItems(*this, name, input, arguments);
  }
  if (name == "sort") return SortItems(*this, input, arguments);
  if (name == "items" || name == "dictsort") return DictItems(*this, name, input);
  if (name == "join") return JoinItems(*this, input, arguments);
  if (name == "indent") return Indent(*this, input, arguments);
  if (name == "int" || name == "float") return ToNumber(*this, name, input, arguments);
  for (const std::string_view known :
       {"first", "last", "min", "max", "sum", "reverse", "unique", "list"}) {
    if (name == known) return FirstOrLast(*this, name, input);
  }
  if (name == "abs") {
    return Less(input, Value(int64_t{0})) ? Arithmetic(*this, "-", Value(int64_t{0}), input)
                                          : input;
  }
  if (name == "safe" && input.is_text()) return input;
  if (name == "string" || name == "safe") return Value(TextOf(input));
  if (name == "trim") {
    return CallMethod(*this, Value(TextOf(input)), "strip", arguments);
  }
  if (name == "title") return Value(JinjaTitle(TextOf(input)));
  for (const std::string_view known : {"upper", "lower", "capitalize", "replace"}) {
    if (name == known) return CallMethod(*this, Value(TextOf(input)), name, arguments);
  }
  Fail(Concat("the filter '", Printable(name), "' is not supported"));
}

bool Evaluator::ApplyTest(const std::string& name, const Value& input, const Arguments& arguments) {
  const auto argument = [&]() -> const Value& {
    if (arguments.positional.size() != 1) Fail(Concat("the test '", name, "' needs one argument"));
    return arguments.positional[0];
  };
  Charge(0);
  const bool whole = input.is_integer() || input.is_big_integer();
  if (name == "defined") return !input.is_undefined();
  if (name == "undefined") return input.is_undefined();
  if (name == "none") return input.is_none();
  if (name == "string") return input.is_text();
  if (name == "number") return whole || input.is_real() || input.is_bool();
  if (name == "integer") return whole;
  if (name == "float") return input.is_real();
  if (name == "boolean") return input.is_bool();
  if (name == "true") return input.is_bool() && input.boolean();
  if (name == "false") return input.is_bool() && !input.boolean();
  if (name == "mapping") return input.is_dict();
  if (name == "sequence") return input.is_text() || input.is_list() || input.is_dict();
  if (name == "iterable") {
    return input.is_text() || input.is_list() || input.is_dict() || input.is_undefined();
  }
  if (name == "callable") return input.is_object();
  if (name == "odd" || name == "even" || name == "divisibleby") {
    const Value by = name == "divisibleby" ? argument() : Value(int64_t{2});
    const Value rest = Arithmetic(*this, "%", input, by);
    return rest.Truthy() == (name == "odd");
  }
  if (name == "lower") return input.is_text() && PythonLower(input.text()) == input.text();
  if (name == "upper") return input.is_text() && PythonUpper(input.text()) == input.text();
  if (name == "equalto" || name == "eq") return Equal(input, argument());
  if (name == "ne") return !Equal(input, argument());
  if (name == "lt" || name == "lessthan") return Less(input, argument());
  if (name == "gt" || name == "greaterthan") return Less(argument(), input);
  if (name == "le") return !Less(argument(), input);
  if (name == "ge") return !Less(input, argument());
  if (name == "in") return Contains(argument(), input);
  if (name == "sameas")
    return input.TypeName() == argument().TypeName() && Equal(input, argument());
  Fail(Concat("the test '", Printable(name), "' is not supported"));
}

}  // namespace pace::jinja
