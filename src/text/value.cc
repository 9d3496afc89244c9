#include "text/value.h"

#include <algorithm>

namespace pace {
namespace {

// Below this many keys a walk is as fast as a table.
constexpr size_t kMaxUnindexed = 12;

}  // namespace

void ValueDict::Put(std::string key, Value value) {
  for (size_t i = 0; index_.empty() && i < entries_.size(); ++i) {
    if (entries_[i].first != key) continue;
    entries_[i].second = std::move(value);
    return;
  }
  if (const auto entry = index_.find(key); entry != index_.end()) {
    entries_[entry->second].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (!index_.empty()) {
    index_.emplace(entries_.back().first, entries_.size() - 1);
  } else if (entries_.size() > kMaxUnindexed) {
    for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
  }
}

const Value* ValueDict::Find(std::string_view key) const {
  if (!index_.empty()) {
    const auto entry = index_.find(std::string(key));
    return entry == index_.end() ? nullptr : &entries_[entry->second].second;
  }
  for (const auto& [name, value] : entries_) {
    if (name == key) return &value;
  }
  return nullptr;
}

Value Value::MakeUndefined(std::string name) {
  return Value(Data(Undefined{std::make_shared<const std::string>(std::move(name))}));
}

Value Value::MakeBigInteger(std::string digits) {
  return Value(Data(BigInteger{std::make_shared<const std::string>(std::move(digits))}));
}

Value Value::MakeList(ValueList items, bool is_tuple) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return Value(
      Data(List{std::make_shared<const ValueList>(std::move(items)), is_tuple, depth + 1}));
}

Value Value::MakeDict(ValueDict items) {
  int depth = 0;
  for (const auto& [key, item] : items.entries()) depth = std::max(depth, item.depth());
  return Value(Data(Dict{std::make_shared<const ValueDict>(std::move(items)), depth + 1}));
}

int Value::depth() const {
  if (const List* list = std::get_if<List>(&data_)) return list->depth;
  if (const Dict* dict = std::get_if<Dict>(&data_)) return dict->depth;
  return 0;
}

std::string_view Value::undefined_name() const {
  const auto& name = std::get<Undefined>(data_).name;
  return name == nullptr ? std::string_view("value") : std::string_view(*name);
}

bool Value::Truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_bool()) return boolean();
  if (is_integer()) return integer() != 0;
  if (is_real()) return real() != 0;
  if (is_text()) return !text().empty();
  if (is_list()) return !list().empty();
  if (is_dict()) return !dict().entries().empty();
  return true;
}

std::string_view Value::TypeName() const {
  if (is_undefined()) return "undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_integer() || is_big_integer()) return "int";
  if (is_real()) return "float";
  if (is_text()) return "str";
  if (is_list()) return is_tuple() ? "tuple" : "list";
  if (is_dict()) return "dict";
  return "object";
}

}  // namespace pace
