// Field: one documented setting, bound to the variable that holds it.
//
// An options struct lists its fields once; that list is its parser, its
// `--help`, its documentation and its writer.
//
//   std::vector<Field> fields = {
//       Field::Int("threshold", threshold, "Batches that may ...").AtLeast(0, "0 = on-policy"),
//       Field::Enum("requeue", requeue, kRequeueNames, "...")};
//
// A Field borrows the variable: it must not outlive the struct.
// Thread-safety: none; settings are read before threads start.
#ifndef PACE_CONFIG_FIELD_H_
#define PACE_CONFIG_FIELD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/status.h"

namespace pace {

// Text as YAML and the command line write it; the field decides its type.
struct PlainText {
  std::string text;
};

// An option by name, its value as text.
struct NamedSetting {
  std::string name = {};
  std::string value = {};
};
using NamedSettings = std::vector<NamedSetting>;

// A value on its way into a Field. Typed sources (JSON) use the typed
// alternatives, and then a string does not pass for a number.
using FieldValue = std::variant<PlainText, bool, int64_t, double, std::string,
                                std::vector<std::string>, NamedSettings, std::nullptr_t>;

// How a Field reads and writes its variable. Converts from the variable itself.
template <typename T>
struct FieldAccess {
  FieldAccess(T& value)
      : get([&value] { return value; }), set([&value](T given) { value = std::move(given); }) {}
  FieldAccess(std::function<T()> get_value, std::function<void(T)> set_value)
      : get(std::move(get_value)), set(std::move(set_value)) {}

  std::function<T()> get;
  std::function<void(T)> set;
};

class Field {
 public:
  // Something chosen by name that has options of its own, as `train.loss`.
  struct Choice {
    std::string key = {};
    std::span<const std::string_view> names = {};
    std::function<size_t()> get = {};                  // the index of the chosen name
    std::function<void(size_t)> choose = {};           // with that name's default options
    std::function<std::vector<Field>()> options = {};  // of the chosen name
    std::vector<std::string>* given = nullptr;         // the options that were set, in order
  };

  static Field Bool(std::string key, FieldAccess<bool> value, std::string doc);
  static Field Int(std::string key, FieldAccess<int64_t> value, std::string doc);
  static Field Real(std::string key, FieldAccess<double> value, std::string doc);
  static Field Text(std::string key, FieldAccess<std::string> value, std::string doc);
  static Field TextList(std::string key, FieldAccess<std::vector<std::string>> value,
                        std::string doc);
  // An empty one is written as the word `empty`, null in JSON.
  static Field OptionalInt(std::string key, FieldAccess<std::optional<int64_t>> value,
                           std::string doc, std::string empty = "auto");
  static Field OptionalReal(std::string key, FieldAccess<std::optional<double>> value,
                            std::string doc, std::string empty = "auto");
  // The enum's values are 0, 1, ... in the order of `names`.
  template <typename E>
  static Field Enum(std::string key, E& value, std::span<const std::string_view> names,
                    std::string doc) {
    return OneOf(std::move(key), names,
                 {[&value] { return static_cast<size_t>(value); },
                  [&value](size_t index) { value = static_cast<E>(index); }},
                 std::move(doc));
  }
  // names[0] is the empty one.
  template <typename E>
  static Field OptionalEnum(std::string key, std::optional<E>& value,
                            std::span<const std::string_view> names, std::string doc) {
    return OneOf(std::move(key), names,
                 {[&value] { return value.has_value() ? static_cast<size_t>(*value) + 1 : 0; },
                  [&value](size_t index) {
                    value.reset();
                    if (index > 0) value = static_cast<E>(index - 1);
                  }},
                 std::move(doc));
  }
  // An index into `names`.
  static Field OneOf(std::string key, std::span<const std::string_view> names,
                     FieldAccess<size_t> index, std::string doc);
  // A name, or {name: NAME, OPTION: VALUE, ...}, which states all options that differ
  // from the defaults; without `name` the chosen one stays.
  static Field Named(const Choice& choice, std::string doc);
  // The options of a choice as a list of OPTION=VALUE, which states all of them.
  static Field OptionList(std::string key, const Choice& choice, std::string doc);

  // Bounds of a number, both inclusive; an error shows `hint` after the rule.
  Field AtLeast(double minimum, std::string hint = "") &&;
  Field AtMost(double maximum, std::string hint = "") &&;
  Field Above(double minimum, std::string hint = "") &&;
  // `inf` is a value of this number.
  Field OrInfinite() &&;
  // Texts of this form, python:FILE:CLASS, are values, too; `text` is empty for all others.
  Field OrText(const std::string& form, FieldAccess<std::string> text) &&;

  const std::string& key() const { return key_; }
  const std::string& doc() const { return doc_; }
  // "integer", "real", "one of a, b": for --help.
  const std::string& type() const { return type_; }
  // Of Field::Named; null for others.
  const Choice* choice() const { return choice_.has_value() ? &*choice_ : nullptr; }

  // Reads a value, checks its type and bounds. The message of an error is "key = value: rule
  // (hint)"; the variable then keeps its old value, but options are set up to the wrong one.
  Status Set(const FieldValue& value, std::string_view full_key) const;
  // Sets one option of a choice: key `full_key`.`option`. REQUIRES: choice()
  Status SetOption(std::string_view option, const FieldValue& value,
                   std::string_view full_key) const;
  // The bounds of the present value.
  Status Check(std::string_view full_key) const;

  // The value as YAML writes it; reads back to the same value.
  std::string Get() const { return get_(); }

 private:
  template <typename T, typename Parse, typename Format>
  static Field Make(std::string key, std::string doc, std::string type, FieldAccess<T> value,
                    Parse parse, Format format);
  Status CheckBounds(const std::optional<double>& value) const;

  std::string key_;
  std::string doc_;
  std::string type_;
  std::function<std::string()> get_;
  std::function<std::optional<double>()> number_;  // what bounds apply to
  // Takes the field itself so that bounds set after construction are seen.
  std::function<Status(const Field&, const FieldValue&, std::string_view full_key)> set_;
  std::optional<Choice> choice_;
  std::optional<double> minimum_, maximum_;
  bool open_minimum_ = false;
  bool or_infinite_ = false;
  std::string minimum_hint_, maximum_hint_;
};

// The field of that key. The error about an unknown one, OWNER.KEY, names the nearest and
// lists those that `what` has.
Result<const Field*> FindField(const std::vector<Field>& fields, std::string_view key,
                               std::string_view owner, std::string_view what);
// Sets fields by name, each at most once. `owner` stands in front of every key.
Status SetFields(const std::vector<Field>& fields, const NamedSettings& settings,
                 std::string_view owner);
// The bounds of all fields, for options that code filled in.
Status CheckFields(const std::vector<Field>& fields, std::string_view owner);

// The fields of a member, as a function of its owner: FieldsOf<&Settings::run>.
template <auto Member, typename Owner>
std::vector<Field> FieldsOf(Owner& owner) {
  return (owner.*Member).Fields();
}

// The candidate with the smallest edit distance to `word`; empty without one.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace pace

#endif  // PACE_CONFIG_FIELD_H_
