// Field: one documented setting, bound to the variable that holds it.
//
// An options struct lists its fields once; that list is its parser, its
// `--help`, its documentation and its writer.
//
//   std::vector<Field> SupplyOptions::Fields() {
//     return {Field::Int("threshold", threshold, "Batches that may ...").AtLeast(0, "0 means
//     on-policy"),
//             Field::Enum("requeue", requeue, kRequeueNames, "...")};
//   }
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
#include <variant>
#include <vector>

#include "core/status.h"

namespace pace {

// Text as YAML and the command line write it: its type is the field's to say.
struct PlainText {
  std::string text;
};

// A value on its way into a Field. Typed sources (JSON) use the typed
// alternatives, and then a string does not pass for a number.
using FieldValue = std::variant<PlainText, bool, int64_t, double, std::string,
                                std::vector<std::string>, std::nullptr_t>;

class Field {
 public:
  static Field Bool(std::string key, bool& value, std::string doc);
  static Field Int(std::string key, int64_t& value, std::string doc);
  static Field Real(std::string key, double& value, std::string doc);
  static Field Text(std::string key, std::string& value, std::string doc);
  static Field TextList(std::string key, std::vector<std::string>& value, std::string doc);
  // Empty is written `auto` (and null in JSON).
  static Field OptionalInt(std::string key, std::optional<int64_t>& value, std::string doc);
  static Field OptionalReal(std::string key, std::optional<double>& value, std::string doc);
  // The enum's values are 0, 1, ... in the order of `names`.
  template <typename E>
  static Field Enum(std::string key, E& value, std::span<const std::string_view> names,
                    std::string doc) {
    return EnumOf(
        std::move(key), names, [&value] { return static_cast<size_t>(value); },
        [&value](size_t index) { value = static_cast<E>(index); }, std::move(doc));
  }

  // Bounds of a number, both inclusive; `hint` is shown behind a broken one.
  Field AtLeast(double minimum, std::string hint = "") &&;
  Field AtMost(double maximum, std::string hint = "") &&;
  Field Above(double minimum, std::string hint = "") &&;

  const std::string& key() const { return key_; }
  const std::string& doc() const { return doc_; }
  // "integer", "real", "one of a, b": for --help.
  const std::string& type() const { return type_; }

  // Reads a value, checks its type and bounds. On an error the variable keeps
  // its old value and the message is "key = value: rule (hint)".
  Status Set(const FieldValue& value, std::string_view full_key) const;

  // The value as YAML writes it; reads back to the same value.
  std::string Get() const { return get_(); }

 private:
  using Setter = std::function<Status(const FieldValue&)>;

  static Field EnumOf(std::string key, std::span<const std::string_view> names,
                      std::function<size_t()> get, std::function<void(size_t)> set,
                      std::string doc);
  Status CheckBounds(double value) const;

  std::string key_;
  std::string doc_;
  std::string type_;
  std::function<std::string()> get_;
  // Takes the field itself so that bounds set after construction are seen.
  std::function<Status(const Field&, const FieldValue&)> set_;
  std::optional<double> minimum_, maximum_;
  bool open_minimum_ = false;
  std::string minimum_hint_, maximum_hint_;
};

// The candidate with the smallest edit distance to `word`; empty without one.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace pace

#endif  // PACE_CONFIG_FIELD_H_
