// JsonWriter appends JSON to a string; it keeps the commas right.
//
//   JsonWriter json(out);
//   json.BeginObject();
//   json.Put("step", 7);
//   json.Key("members"); json.BeginArray(); json.EndArray();
//   json.EndObject();
//
// Doubles are written in their shortest form that reads back to the same value;
// one that is not finite is written null. Keys are written as they are, but by TextKey.
// Thread-safety: none.
#ifndef PACE_CORE_JSON_WRITER_H_
#define PACE_CORE_JSON_WRITER_H_

#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/concat.h"

namespace pace {

// Appends text as a JSON string, quotes included. `short_forms`: \n, \t and their like instead of
// \u000a, \u0009.
void AppendJsonText(std::string& out, std::string_view text, bool short_forms = false);

class JsonWriter {
 public:
  // Borrows the string.
  explicit JsonWriter(std::string& out) : out_(out) {}

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }

  void Key(std::string_view key) {
    Separate();
    out_ += '"';
    out_ += key;
    out_ += "\":";
    separate_ = false;
  }

  // A key that may hold anything.
  void TextKey(std::string_view key) {
    Separate();
    AppendJsonText(out_, key);
    out_ += ':';
    separate_ = false;
  }

  void Value(std::string_view text) {
    Separate();
    AppendJsonText(out_, text);
  }
  // A value that is JSON already.
  void Raw(std::string_view json) {
    Separate();
    out_ += json;
  }
  void Value(const char* text) { Value(std::string_view(text)); }
  void Value(std::nullptr_t) {
    Separate();
    out_ += "null";
  }
  void Value(bool value) {
    Separate();
    AppendTo(out_, value);
  }
  void Value(std::integral auto value) {
    Separate();
    AppendTo(out_, value);
  }
  void Value(double value) {
    if (!std::isfinite(value)) return Value(nullptr);
    Separate();
    AppendTo(out_, value);
  }
  template <typename T>
  void Value(const std::optional<T>& value) {
    value.has_value() ? Value(*value) : Value(nullptr);
  }

  template <typename T>
  void Put(std::string_view key, const T& value) {
    Key(key);
    Value(value);
  }

 private:
  void Separate() {
    if (separate_) out_ += ',';
    separate_ = true;
  }
  void Open(char bracket) {
    Separate();
    out_ += bracket;
    separate_ = false;
  }
  void Close(char bracket) {
    out_ += bracket;
    separate_ = true;
  }

  std::string& out_;
  bool separate_ = false;
};

}  // namespace pace

#endif  // PACE_CORE_JSON_WRITER_H_
