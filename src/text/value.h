// Value: a value as Python would hold it after reading JSON, or as a chat
// template computes with it.
//
// Copies share what they hold; lists and dicts do not change once made.
// Dict keys keep their order. An integer too large for 64 bits keeps its digits.
// Nesting is bounded (kMaxValueDepth), so that walking a value cannot exhaust
// the stack; makers of lists and dicts check MayNest first.
//
// Thread-safety: as a shared_ptr.
#ifndef PACE_TEXT_VALUE_H_
#define PACE_TEXT_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace pace {

class Value;
using ValueList = std::vector<Value>;
inline constexpr int kMaxValueDepth = 200;

// A dict in the order of insertion; a key put again keeps its place.
class ValueDict {
 public:
  void Put(std::string key, Value value);
  const Value* Find(std::string_view key) const;
  const std::vector<std::pair<std::string, Value>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, Value>> entries_;
  std::unordered_map<std::string, size_t> index_;  // built once it pays
};

// Something that belongs to the evaluator: a macro, a bound method, a loop, a
// namespace.
struct ValueObject {
  virtual ~ValueObject() = default;
};

class Value {
 public:
  struct Undefined {
    std::shared_ptr<const std::string> name;  // what was looked for
  };
  struct None {};
  struct BigInteger {
    std::shared_ptr<const std::string> digits;
  };
  struct List {
    std::shared_ptr<const ValueList> items;
    bool is_tuple = false;
    int depth = 1;
  };
  struct Dict {
    std::shared_ptr<const ValueDict> items;
    int depth = 1;
  };

  Value() : data_(Undefined{}) {}
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  explicit Value(const char*) = delete;
  static Value MakeNone() { return Value(Data(None{})); }
  static Value MakeUndefined(std::string name);
  static Value MakeBigInteger(std::string digits);
  // REQUIRES: MayNest(...)
  static Value MakeList(ValueList items, bool is_tuple = false);
  static Value MakeDict(ValueDict items);
  static Value MakeObject(std::shared_ptr<ValueObject> object) {
    return Value(Data(std::move(object)));
  }

  // Whether a list or dict around this value stays within kMaxValueDepth.
  bool MayNest() const { return depth() < kMaxValueDepth; }
  int depth() const;

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(data_); }
  bool is_big_integer() const { return std::holds_alternative<BigInteger>(data_); }
  bool is_real() const { return std::holds_alternative<double>(data_); }
  bool is_text() const { return std::holds_alternative<Text>(data_); }
  bool is_list() const { return std::holds_alternative<List>(data_); }
  bool is_dict() const { return std::holds_alternative<Dict>(data_); }
  bool is_object() const { return std::holds_alternative<std::shared_ptr<ValueObject>>(data_); }

  // REQUIRES: the value is of that kind
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const { return std::get<int64_t>(data_); }
  double real() const { return std::get<double>(data_); }
  const std::string& digits() const { return *std::get<BigInteger>(data_).digits; }
  const std::string& text() const { return *std::get<Text>(data_); }
  const ValueList& list() const { return *std::get<List>(data_).items; }
  bool is_tuple() const { return std::get<List>(data_).is_tuple; }
  const ValueDict& dict() const { return *std::get<Dict>(data_).items; }
  ValueObject* object() const { return std::get<std::shared_ptr<ValueObject>>(data_).get(); }
  std::string_view undefined_name() const;

  // Whether Python's `if` takes it.
  bool Truthy() const;
  // Python's name of the kind: "str", "NoneType".
  std::string_view TypeName() const;

 private:
  using Text = std::shared_ptr<const std::string>;
  using Data = std::variant<Undefined, None, bool, int64_t, BigInteger, double, Text, List, Dict,
                            std::shared_ptr<ValueObject>>;
  explicit Value(Data data) : data_(std::move(data)) {}

  Data data_;
};

}  // namespace pace

#endif  // PACE_TEXT_VALUE_H_
