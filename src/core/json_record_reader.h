// How core/json_record.h reads: one value, or the keys of a record. Include that header.
#ifndef PACE_CORE_JSON_RECORD_READER_H_
#define PACE_CORE_JSON_RECORD_READER_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/json_record_writer.h"
#include "core/json_scanner.h"

namespace pace::json_internal {

class Reader {
 public:
  explicit Reader(JsonScanner& scan) : scan_(scan) {}

  template <typename T>
  void Get(T&& value) {
    if constexpr (requires { ReadJson(scan_, value); }) {
      ReadJson(scan_, value);
    } else if constexpr (requires { value.emplace_back(); }) {
      scan_.EnterArray();
      while (scan_.NextItem()) Get(value.emplace_back());
    } else if constexpr (requires(Items& v) { JsonItems(v, value); }) {
      Array([&value](auto& v) { JsonItems(v, value); });
    } else {
      Object([&value](auto& v) { JsonKeys(v, value); });
    }
  }
  void Get(bool& value) { scan_.Bool(value); }
  void Get(int64_t& value) { scan_.Integer(0, kLargestJsonInteger, "", value); }
  void Get(int32_t& value) { value = static_cast<int32_t>(GetInteger(INT32_MAX, "")); }
  void Get(double& value) { scan_.Real(0, kLargestJsonReal, "", value); }
  void Get(float& value) {
    double number = 0;
    scan_.Real(0, std::numeric_limits<float>::max(), "", number);
    value = static_cast<float>(number);
  }
  void Get(std::string& value) { scan_.Text(value); }
  void Get(Seconds& value) { Get(Within(value, Seconds(0), Seconds(kLargestJsonReal))); }
  void Get(PolicyVersion& value) { value = PolicyVersion(GetInteger(kLargestJsonInteger, "")); }
  template <typename Tag>
  void Get(Id<Tag>& value) {
    value = Id<Tag>(GetInteger(kLargestJsonInteger, ""));
  }
  void Get(Within<int64_t>&& bounded) {
    scan_.Integer(bounded.minimum, bounded.maximum, bounded.hint, bounded.value);
  }
  void Get(Within<double>&& bounded) {
    scan_.Real(bounded.minimum, bounded.maximum, bounded.hint, bounded.value);
  }
  void Get(Within<Seconds>&& bounded) {
    double seconds = 0;
    scan_.Real(bounded.minimum.count(), bounded.maximum.count(), bounded.hint, seconds);
    bounded.value = Seconds(seconds);
  }
  template <typename E>
  void Get(AsNumber<E>&& number) {
    number.value = static_cast<E>(GetInteger(static_cast<int64_t>(number.last), number.hint));
  }
  template <typename E, typename T>
  void Get(AsName<E, T>&& named) {
    std::string name;
    if (!scan_.Text(name)) return;
    const std::optional<E> value = named.from_name(name);
    value.has_value() ? (void)(named.value = *value) : (void)scan_.FailValue(name, named.rule, "");
  }
  template <typename T>
  void Get(std::optional<T>& value) {
    value.reset();
    if (!scan_.TakeNull()) Get(value.emplace());
  }
  template <typename T, size_t N>
  void Get(std::array<T, N>& values) {
    Array([&values](auto& v) {
      for (T& value : values) v(value);
    });
  }
  template <typename T, typename Less>
  void Get(std::map<std::string, T, Less>& values) {
    values.clear();
    scan_.EnterObject();
    while (scan_.NextKey()) {
      const auto [entry, is_new] = values.try_emplace(std::string(scan_.key()));
      is_new ? Get(entry->second) : (void)scan_.Fail("given twice in one object");
    }
  }

 private:
  // Offers the key that the scanner found to a list of keys.
  struct Match {
    Reader& reader;
    uint64_t& seen;  // keys of the list, a bit each
    uint64_t bit = 1;
    bool found = false;
    bool skips_unknown = false;

    void SkipUnknown() { skips_unknown = true; }
    template <typename T>
    void operator()(std::string_view name, T&& value) {
      const uint64_t own = std::exchange(bit, bit << 1);
      if (found || name != reader.scan_.key()) return;
      found = true;
      if ((seen & own) != 0) {
        reader.scan_.Fail("given twice in one object");
        return;
      }
      seen |= own;
      reader.Get(std::forward<T>(value));
    }
    template <typename T>
    void Optional(std::string_view name, T&& value, bool = true) {
      (*this)(name, std::forward<T>(value));
    }
  };
  struct Missing {
    JsonScanner& scan;
    const uint64_t seen;
    uint64_t bit = 1;

    void SkipUnknown() {}
    template <typename T>
    void operator()(std::string_view name, T&&) {
      if ((seen & std::exchange(bit, bit << 1)) == 0) scan.Fail(Concat("missing key ", name));
    }
    template <typename T>
    void Optional(std::string_view, T&&, bool = true) {
      bit <<= 1;
    }
  };
  struct Items {
    Reader& reader;
    int64_t count = 0;
    bool missing = false;

    template <typename T>
    void operator()(T&& value) {
      ++count;
      missing = missing || !reader.scan_.NextItem();
      if (!missing) reader.Get(std::forward<T>(value));
    }
  };

  int64_t GetInteger(int64_t maximum, std::string_view hint) {
    int64_t value = 0;
    scan_.Integer(0, maximum, hint, value);
    return value;
  }

  template <typename List>
  void Object(const List& list) {
    uint64_t seen = 0;
    scan_.EnterObject();
    while (scan_.NextKey()) {
      Match match{*this, seen};
      list(match);
      if (!match.found) match.skips_unknown ? scan_.Skip() : scan_.FailUnknownKey();
    }
    Missing missing{scan_, seen};
    if (scan_.ok()) list(missing);
  }
  template <typename List>
  void Array(const List& list) {
    Items items{*this};
    scan_.EnterArray();
    list(items);
    if (items.missing || scan_.NextItem()) scan_.Fail(Concat("must have ", items.count, " items"));
  }

  JsonScanner& scan_;
};

}  // namespace pace::json_internal

#endif  // PACE_CORE_JSON_RECORD_READER_H_
