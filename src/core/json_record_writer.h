// How core/json_record.h writes: one value, or the keys of a record. Include that header.
#ifndef PACE_CORE_JSON_RECORD_WRITER_H_
#define PACE_CORE_JSON_RECORD_WRITER_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/clock.h"
#include "core/ids.h"
#include "core/json_writer.h"
#include "core/version.h"

namespace pace {

// Integers up to here are exact as doubles, too.
inline constexpr int64_t kLargestJsonInteger = int64_t{1} << 53;
inline constexpr double kLargestJsonReal = std::numeric_limits<double>::max();

// A number with other bounds, both inclusive. The hint follows an error.
template <typename T>
struct Within {
  Within(T& number, std::type_identity_t<T> least, std::type_identity_t<T> most,
         std::string_view about = "")
      : value(number), minimum(least), maximum(most), hint(about) {}
  T& value;
  const T minimum;
  const T maximum;
  const std::string_view hint;
};

// An enum as its number, from 0 to `last`.
template <typename E>
struct AsNumber {
  AsNumber(E& number, E largest, std::string_view about = "")
      : value(number), last(largest), hint(about) {}
  E& value;
  const E last;
  const std::string_view hint;
};

// An enum, or an optional one that is there, as its name: Name(value) writes it,
// `from_name` reads it.
template <typename E, typename T>
struct AsName {
  AsName(T& named, std::optional<E> (*read)(std::string_view), std::string_view what)
      : value(named), from_name(read), rule(what) {}
  T& value;
  std::optional<E> (*const from_name)(std::string_view);
  const std::string_view rule;  // of names: "must be admit or reject"
};

namespace json_internal {

template <typename T>
concept HasWriter = requires(JsonWriter& json, const T& value) { WriteJson(json, value); };

class Writer {
 public:
  explicit Writer(JsonWriter& json) : json_(json) {}

  template <typename T>
  void operator()(std::string_view key, const T& value) {
    json_.Key(key);
    Put(value);
  }
  template <typename T>
  void Optional(std::string_view key, const T& value, bool write = true) {
    if (write) (*this)(key, value);
  }
  void SkipUnknown() {}
  // An item of an array.
  template <typename T>
  void operator()(const T& value) {
    Put(value);
  }

  template <typename T>
  void Put(const T& value) {
    if constexpr (HasWriter<T>) {
      WriteJson(json_, value);
    } else if constexpr (requires { value.begin(); }) {
      json_.BeginArray();
      for (const auto& item : value) Put(item);
      json_.EndArray();
    } else if constexpr (requires(Writer& v, T& record) { JsonItems(v, record); }) {
      json_.BeginArray();
      JsonItems(*this, const_cast<T&>(value));  // a Writer changes nothing
      json_.EndArray();
    } else {
      json_.BeginObject();
      JsonKeys(*this, const_cast<T&>(value));
      json_.EndObject();
    }
  }
  void Put(bool value) { json_.Value(value); }
  void Put(int64_t value) { json_.Value(value); }
  void Put(int32_t value) { json_.Value(value); }
  void Put(double value) { json_.Value(value); }
  void Put(const char* value) { json_.Value(value); }
  void Put(const std::string& value) { json_.Value(value); }
  void Put(std::string_view value) { json_.Value(value); }
  void Put(Seconds value) { json_.Value(value.count()); }
  void Put(PolicyVersion value) { json_.Value(value.step()); }
  template <typename Tag>
  void Put(Id<Tag> value) {
    json_.Value(value.value());
  }
  template <typename T>
  void Put(const Within<T>& bounded) {
    Put(bounded.value);
  }
  template <typename E>
  void Put(const AsNumber<E>& number) {
    Put(static_cast<int64_t>(number.value));
  }
  template <typename E, typename T>
  void Put(const AsName<E, T>& named) {
    if constexpr (std::is_same_v<E, T>) {
      Put(Name(named.value));
    } else {
      Put(Name(*named.value));
    }
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    value.has_value() ? Put(*value) : json_.Value(nullptr);
  }
  template <typename T, typename Less>
  void Put(const std::map<std::string, T, Less>& values) {
    json_.BeginObject();
    for (const auto& [key, value] : values) {
      json_.TextKey(key);
      Put(value);
    }
    json_.EndObject();
  }

 private:
  JsonWriter& json_;
};

}  // namespace json_internal
}  // namespace pace

#endif  // PACE_CORE_JSON_RECORD_WRITER_H_
