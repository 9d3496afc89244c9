// The methods of strings, lists and dicts that templates may call. Values do
// not change, so there are none that would change one.
#include <algorithm>
#include <array>

#include "core/concat.h"
#include "core/printable.h"
#include "text/characters.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/strings.h"

namespace pace::jinja {
namespace {

constexpr std::array<std::string_view, 26> kTextMethods = {
    "strip",    "lstrip",  "rstrip",       "split",        "rsplit",     "splitlines", "startswith",
    "endswith", "upper",   "lower",        "title",        "capitalize", "replace",    "find",
    "rfind",    "count",   "join",         "isdigit",      "isalpha",    "isspace",    "isupper",
    "islower",  "isalnum", "removeprefix", "removesuffix", "format"};
constexpr std::array<std::string_view, 4> kDictMethods = {"items", "keys", "values", "get"};
// Known so that they are refused by name.
constexpr std::array<std::string_view, 9> kChanging = {
    "append", "extend", "insert", "pop", "remove", "update", "setdefault", "clear", "sort"};

template <typename Names>
bool Holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const std::string& NeedText(Evaluator& evaluator, const Arguments& arguments, size_t index,
                            const std::string& method) {
  if (index >= arguments.positional.size() || !arguments.positional[index].is_text()) {
    evaluator.Fail(Concat(method, " needs a string"));
  }
  return arguments.positional[index].text();
}

std::optional<std::string> OptionalText(Evaluator& evaluator, const Value* value,
                                        const std::string& method) {
  if (value == nullptr || value->is_none()) return std::nullopt;
  if (!value->is_text()) evaluator.Fail(Concat(method, " needs a string"));
  return value->text();
}

int64_t Count(const Value* value) {
  return value != nullptr && value->is_integer() ? value->integer() : -1;
}

Value ListOfTexts(Evaluator& evaluator, std::vector<std::string> texts) {
  ValueList items;
  for (std::string& text : texts) {
    evaluator.Charge(text.size());
    items.emplace_back(std::move(text));
  }
  return evaluator.MakeList(std::move(items));
}

bool Affixed(Evaluator& evaluator, const std::string& text, const Arguments& arguments,
             const std::string& method) {
  const bool front = method == "startswith";
  const auto matches = [&](const Value& affix) {
    if (!affix.is_text()) evaluator.Fail(Concat(method, " needs a string"));
    return front ? text.starts_with(affix.text()) : text.ends_with(affix.text());
  };
  if (arguments.positional.size() == 1 && arguments.positional[0].is_list()) {
    const ValueList& list = arguments.positional[0].list();
    return std::any_of(list.begin(), list.end(), matches);
  }
  if (arguments.positional.size() != 1) evaluator.Fail(Concat(method, " takes one argument here"));
  return matches(arguments.positional[0]);
}

bool AllAre(const std::string& text, const std::string& method) {
  bool cased = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    const uint32_t c = point.code;
    at += point.num_bytes;
    if (method == "isdigit" && !IsDecimalDigit(c)) return false;
    if (method == "isalpha" && !IsLetter(c)) return false;
    if (method == "isalnum" && !IsLetter(c) && !IsDecimalDigit(c)) return false;
    if (method == "isspace" && !IsPythonSpace(c)) return false;
    if (method == "isupper" && IsLower(c)) return false;
    if (method == "islower" && IsUpper(c)) return false;
    cased = cased || IsLower(c) || IsUpper(c);
  }
  return !text.empty() && (cased || (method != "isupper" && method != "islower"));
}

Value Find(Evaluator& evaluator, const std::string& text, const Arguments& arguments,
           const std::string& method) {
  const std::string& what = NeedText(evaluator, arguments, 0, method);
  if (arguments.positional.size() > 1) evaluator.Fail(Concat(method, " takes one argument here"));
  evaluator.ChargeSearch(text, what);
  if (method == "count") {
    if (what.empty()) return Value(static_cast<int64_t>(CountCodePoints(text)) + 1);
    int64_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos;
         at = text.find(what, at + what.size())) {
      ++count;
    }
    return Value(count);
  }
  const size_t at = method == "find" ? text.find(what) : text.rfind(what);
  if (at == std::string::npos) return Value(int64_t{-1});
  return Value(static_cast<int64_t>(CountCodePoints(std::string_view(text).substr(0, at))));
}

Value Join(Evaluator& evaluator, const std::string& separator, const Arguments& arguments) {
  if (arguments.positional.size() != 1) evaluator.Fail("join takes one argument");
  std::string out;
  bool first = true;
  for (const Value& item : evaluator.ItemsOf(arguments.positional[0])) {
    if (!item.is_text()) evaluator.Fail("join needs strings");
    if (!first) out += separator;
    first = false;
    out += item.text();
    evaluator.Charge(item.text().size() + separator.size());
  }
  return Value(std::move(out));
}

Value CallText(Evaluator& evaluator, const std::string& text, const std::string& name,
               const Arguments& arguments) {
  evaluator.Charge(text.size());
  const Value* first = arguments.Find(0, "sep");
  const Value* second = arguments.Find(1, "maxsplit");
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const std::optional<std::string> characters = OptionalText(evaluator, first, name);
    if (characters.has_value()) evaluator.Charge(characters->size());
    return Value(Strip(text, characters, name != "rstrip", name != "lstrip"));
  }
  if (name == "split" || name == "rsplit") {
    const std::optional<std::string> separator = OptionalText(evaluator, first, name);
    if (separator.has_value() && separator->empty()) evaluator.Fail("empty separator");
    if (separator.has_value()) evaluator.ChargeSearch(text, *separator);
    if (name == "rsplit" && !separator.has_value() && second != nullptr) {
      evaluator.Fail("rsplit at space with a bound is not supported");
    }
    return ListOfTexts(evaluator, SplitText(text, separator, Count(second), name == "rsplit"));
  }
  if (name == "splitlines") return ListOfTexts(evaluator, SplitLines(text));
  if (name == "startswith" || name == "endswith") {
    return Value(Affixed(evaluator, text, arguments, name));
  }
  if (name == "upper") return Value(PythonUpper(text));
  if (name == "lower") return Value(PythonLower(text));
  if (name == "title") return Value(PythonTitle(text));
  if (name == "capitalize") return Value(PythonCapitalize(text));
  if (name == "replace") {
    const std::string& from = NeedText(evaluator, arguments, 0, name);
    const std::string& to = NeedText(evaluator, arguments, 1, name);
    evaluator.ChargeSearch(text, from);
    evaluator.Charge((text.size() + 1) * (from.empty() ? to.size() : to.size() / from.size() + 1));
    return Value(ReplaceAll(text, from, to, Count(arguments.Find(2, "count"))));
  }
  if (name == "find" || name == "rfind" || name == "count") {
    return Find(evaluator, text, arguments, name);
  }
  if (name == "join") return Join(evaluator, text, arguments);
  if (name == "removeprefix" || name == "removesuffix") {
    const std::string& affix = NeedText(evaluator, arguments, 0, name);
    if (name == "removeprefix" && text.starts_with(affix)) return Value(text.substr(affix.size()));
    if (name == "removesuffix" && text.ends_with(affix)) {
      return Value(text.substr(0, text.size() - affix.size()));
    }
    return Value(text);
  }
  if (name.starts_with("is")) return Value(AllAre(text, name));
  evaluator.Fail(Concat("the string method '", name, "' is not supported"));
}

}  // namespace

bool HasMethod(const Value& self, const std::string& name) {
  if (self.is_text()) return Holds(kTextMethods, name);
  if (self.is_dict()) {
    // Where a message has a member of a changing method's name, it is meant.
    return Holds(kDictMethods, name) || (Holds(kChanging, name) && !self.dict().Find(name));
  }
  return self.is_list() && (name == "index" || name == "count" || Holds(kChanging, name));
}

Value CallMethod(Evaluator& evaluator, const Value& self, const std::string& name,
                 const Arguments& arguments) {
  if (Holds(kChanging, name) && !self.is_text()) {
    evaluator.Fail(Concat("'", name, "' would change a value; templates may not"));
  }
  if (self.is_text()) return CallText(evaluator, self.text(), name, arguments);
  if (self.is_list()) {
    if (arguments.positional.size() != 1) evaluator.Fail(Concat(name, " takes one argument"));
    int64_t count = 0;
    for (size_t i = 0; i < self.list().size(); ++i) {
      if (!evaluator.Equal(self.list()[i], arguments.positional[0])) continue;
      if (name == "index") return Value(static_cast<int64_t>(i));
      ++count;
    }
    if (name == "index") evaluator.Fail("index: the value is not in the list");
    return Value(count);
  }
  if (name == "get") {
    const Value* key = arguments.Find(0, "key");
    if (key == nullptr) evaluator.Fail("get needs a key");
    const Value* found = key->is_text() ? self.dict().Find(key->text()) : nullptr;
    const Value* otherwise = arguments.Find(1, "default");
    return found != nullptr ? *found : otherwise != nullptr ? *otherwise : Value::MakeNone();
  }
  ValueList items;
  for (const auto& [key, value] : self.dict().entries()) {
    if (name == "items") {
      items.push_back(evaluator.MakeList({Value(key), value}, true));
    } else {
      items.push_back(name == "keys" ? Value(key) : value);
    }
  }
  return evaluator.MakeList(std::move(items));
}

}  // namespace pace::jinja
