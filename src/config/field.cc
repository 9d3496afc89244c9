#include "config/field.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include "config/text_list.h"
#include "core/printable.h"

namespace pace {
namespace {

// Beyond 2^53 a double no longer counts by ones; no setting needs it.
constexpr double kLargestInteger = 9007199254740992.0;
// A word longer than this is no misspelt key.
constexpr size_t kMaxNearestBytes = 64;

Result<int64_t> ToInt(const FieldValue& value) {
  if (const auto* typed = std::get_if<int64_t>(&value)) return *typed;
  if (const auto* real = std::get_if<double>(&value)) {
    if (std::floor(*real) == *real && std::abs(*real) <= kLargestInteger) {
      return static_cast<int64_t>(*real);
    }
  }
  if (const auto* plain = std::get_if<PlainText>(&value)) {
    int64_t parsed = 0;
    const char* end = plain->text.data() + plain->text.size();
    const auto [stop, error] = std::from_chars(plain->text.data(), end, parsed);
    if (error == std::errc() && stop == end) return parsed;
  }
  return InvalidArgument("must be an integer");
}

// "a, b, c"
std::string JoinNames(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) out += Concat(out.empty() ? "" : ", ", name);
  return out;
}

Result<double> ToReal(const FieldValue& value) {
  if (const auto* typed = std::get_if<int64_t>(&value)) return static_cast<double>(*typed);
  if (const auto* typed = std::get_if<double>(&value)) return *typed;
  if (const auto* plain = std::get_if<PlainText>(&value)) {
    double parsed = 0;
    const char* end = plain->text.data() + plain->text.size();
    const auto [stop, error] = std::from_chars(plain->text.data(), end, parsed);
    if (error == std::errc() && stop == end) return parsed;
  }
  return InvalidArgument("must be a number");
}

Result<std::string> ToText(const FieldValue& value) {
  if (const auto* plain = std::get_if<PlainText>(&value)) return plain->text;
  if (const auto* typed = std::get_if<std::string>(&value)) return *typed;
  return InvalidArgument("must be text");
}

Result<bool> ToBool(const FieldValue& value) {
  if (const auto* typed = std::get_if<bool>(&value)) return *typed;
  if (const auto* plain = std::get_if<PlainText>(&value)) {
    if (plain->text == "true" || plain->text == "false") return plain->text == "true";
  }
  return InvalidArgument("must be true or false");
}

Result<std::vector<std::string>> ToTextList(const FieldValue& value) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return *list;
  const Result<std::string> text = ToText(value);
  if (!text.ok()) return InvalidArgument("must be a list of names");
  return ParseTextList(*text);
}

Result<size_t> IndexOf(const FieldValue& value, std::span<const std::string_view> names) {
  const Result<std::string> text = ToText(value);
  for (size_t i = 0; text.ok() && i < names.size(); ++i) {
    if (names[i] == *text) return i;
  }
  return InvalidArgument("must be one of ", JoinNames(names));
}

// `parse`, or nothing for null and the word `empty`. `type` is "number or none".
template <typename T>
auto OrEmpty(Result<T> (*parse)(const FieldValue&), const std::string& type,
             const std::string& empty) {
  return [=](const FieldValue& value) -> Result<std::optional<T>> {
    const Result<std::string> text = ToText(value);
    if (std::holds_alternative<std::nullptr_t>(value) || (text.ok() && *text == empty)) {
      return std::optional<T>();
    }
    const Result<T> parsed = parse(value);
    if (parsed.ok()) return std::optional<T>(*parsed);
    return InvalidArgument("must be ", type.front() == 'i' ? "an " : "a ", type);
  };
}

auto TextOrEmpty(const std::string& empty) {
  return [empty](const auto& value) { return value.has_value() ? Concat(*value) : empty; };
}

// What bounds apply to.
template <typename T>
std::optional<double> NumberIn(const T& value) {
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_same_v<T, std::optional<int64_t>> ||
                       std::is_same_v<T, std::optional<double>>) {
    return value.has_value() ? NumberIn(*value) : std::nullopt;
  } else {
    return std::nullopt;
  }
}

std::string Shown(const FieldValue& value) {
  if (const auto* plain = std::get_if<PlainText>(&value)) return Printable(plain->text);
  if (const auto* typed = std::get_if<bool>(&value)) return *typed ? "true" : "false";
  if (const auto* typed = std::get_if<int64_t>(&value)) return Concat(*typed);
  if (const auto* typed = std::get_if<double>(&value)) return Concat(*typed);
  if (const auto* typed = std::get_if<std::string>(&value)) return "\"" + Printable(*typed) + "\"";
  if (std::holds_alternative<std::vector<std::string>>(value)) return "[...]";
  if (std::holds_alternative<NamedSettings>(value)) return "{...}";
  return "null";
}

// "key = value: rule"
Status Refused(const Status& status, const FieldValue& value, std::string_view full_key) {
  return {status.code(), Concat(full_key, " = ", Shown(value), ": ", status.message())};
}

const Field* Find(const std::vector<Field>& fields, std::string_view key) {
  for (const Field& field : fields) {
    if (field.key() == key) return &field;
  }
  return nullptr;
}

Status CheckOnce(const NamedSettings& settings, std::string_view owner) {
  for (size_t i = 0; i < settings.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (settings[k].name != settings[i].name) continue;
      return InvalidArgument(owner, ".", settings[i].name, " = ", Printable(settings[i].value),
                             ": is given twice");
    }
  }
  return Status::Ok();
}

void Reset(const Field::Choice& choice, size_t index) {
  choice.choose(index);
  choice.given->clear();
}

// A YAML double-quoted scalar where plain text would read back differently.
std::string Quoted(const std::string& text) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  const bool null = text == "null" || text == "Null" || text == "NULL";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos && text.front() != '-' &&
      !null) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string ListText(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += Concat(out.size() > 1 ? ", " : "", Quoted(item));
  return out + "]";
}

}  // namespace

template <typename T, typename Parse, typename Format>
Field Field::Make(std::string key, std::string doc, std::string type, FieldAccess<T> value,
                  Parse parse, Format format) {
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = std::move(type);
  field.get_ = [value, format] { return format(value.get()); };
  field.number_ = [value] { return NumberIn(value.get()); };
  field.set_ = [value, parse](const Field& self, const FieldValue& given,
                              std::string_view full_key) -> Status {
    Result<T> parsed = parse(given);
    const Status status = parsed.ok() ? self.CheckBounds(NumberIn(*parsed)) : parsed.status();
    if (!status.ok()) return Refused(status, given, full_key);
    value.set(std::move(*parsed));
    return Status::Ok();
  };
  return field;
}

Field Field::Bool(std::string key, FieldAccess<bool> value, std::string doc) {
  return Make(std::move(key), std::move(doc), "true or false", std::move(value), ToBool,
              [](bool b) { return std::string(b ? "true" : "false"); });
}

Field Field::Int(std::string key, FieldAccess<int64_t> value, std::string doc) {
  return Make(std::move(key), std::move(doc), "integer", std::move(value), ToInt,
              [](int64_t number) { return Concat(number); })
      .AtMost(kLargestInteger);
}

Field Field::Real(std::string key, FieldAccess<double> value, std::string doc) {
  return Make(std::move(key), std::move(doc), "number", std::move(value), ToReal,
              [](double number) { return Concat(number); });
}

Field Field::Text(std::string key, FieldAccess<std::string> value, std::string doc) {
  return Make(std::move(key), std::move(doc), "text", std::move(value), ToText, Quoted);
}

Field Field::TextList(std::string key, FieldAccess<std::vector<std::string>> value,
                      std::string doc) {
  return Make(std::move(key), std::move(doc), "list of names", std::move(value), ToTextList,
              ListText);
}

Field Field::OptionalInt(std::string key, FieldAccess<std::optional<int64_t>> value,
                         std::string doc, std::string empty) {
  const std::string type = "integer or " + empty;
  return Make(std::move(key), std::move(doc), type, std::move(value), OrEmpty(ToInt, type, empty),
              TextOrEmpty(empty))
      .AtMost(kLargestInteger);
}

Field Field::OptionalReal(std::string key, FieldAccess<std::optional<double>> value,
                          std::string doc, std::string empty) {
  const std::string type = "number or " + empty;
  return Make(std::move(key), std::move(doc), type, std::move(value), OrEmpty(ToReal, type, empty),
              TextOrEmpty(empty));
}

Field Field::OneOf(std::string key, std::span<const std::string_view> names,
                   FieldAccess<size_t> index, std::string doc) {
  return Make(
      std::move(key), std::move(doc), "one of " + JoinNames(names), std::move(index),
      [names](const FieldValue& given) { return IndexOf(given, names); },
      [names](size_t chosen) { return std::string(names[chosen]); });
}

Field Field::Named(const Choice& choice, std::string doc) {
  const auto chosen = [choice](const FieldValue& given,
                               std::string_view full_key) -> Result<size_t> {
    Result<size_t> index = IndexOf(given, choice.names);
    if (index.ok()) return index;
    const std::vector<std::string> names(choice.names.begin(), choice.names.end());
    const std::string nearest = Nearest(Shown(given), names);
    return Refused(InvalidArgument(index.status().message(), " (nearest: ", nearest, ")"), given,
                   full_key);
  };
  Field field;
  field.key_ = choice.key;
  field.doc_ = std::move(doc);
  field.type_ = "one of " + JoinNames(choice.names);
  field.choice_ = choice;
  field.get_ = [choice] { return std::string(choice.names[choice.get()]); };
  field.number_ = [] { return std::nullopt; };
  field.set_ = [choice, chosen](const Field& self, const FieldValue& given,
                                std::string_view full_key) -> Status {
    const auto* const settings = std::get_if<NamedSettings>(&given);
    if (settings == nullptr) {
      PACE_ASSIGN_OR_RETURN(const size_t index, chosen(given, full_key));
      // Options of one name mean nothing to another.
      if (index != choice.get()) Reset(choice, index);
      return Status::Ok();
    }
    size_t index = choice.get();
    for (const NamedSetting& setting : *settings) {
      if (setting.name != "name") continue;
      PACE_ASSIGN_OR_RETURN(index, chosen(PlainText{setting.value}, full_key));
    }
    Reset(choice, index);
    for (const NamedSetting& setting : *settings) {
      if (setting.name == "name") continue;
      PACE_RETURN_IF_ERROR(self.SetOption(setting.name, PlainText{setting.value}, full_key));
    }
    return Status::Ok();
  };
  return field;
}

Field Field::OptionList(std::string key, const Choice& choice, std::string doc) {
  const Field named = Named(choice, "");
  FieldAccess<std::vector<std::string>> none([] { return std::vector<std::string>(); },
                                             [](const std::vector<std::string>&) {});
  Field field = TextList(std::move(key), std::move(none), std::move(doc));
  field.get_ = [choice] {
    std::vector<std::string> items;
    const std::vector<Field> options = choice.options();
    for (const std::string& name : *choice.given) {
      if (const Field* const option = Find(options, name)) {
        items.push_back(name + "=" + option->Get());
      }
    }
    return ListText(items);
  };
  field.set_ = [choice, named](const Field&, const FieldValue& given,
                               std::string_view full_key) -> Status {
    const Result<std::vector<std::string>> items = ToTextList(given);
    if (!items.ok()) return Refused(items.status(), given, full_key);
    const std::string owner = Concat(full_key.substr(0, full_key.find('.') + 1), choice.key);
    Reset(choice, choice.get());
    NamedSettings seen;
    for (const std::string& item : *items) {
      const size_t equals = item.find('=');
      if (equals == 0 || equals == std::string::npos || equals + 1 == item.size()) {
        return InvalidArgument(full_key, " = ", Printable(item), ": must be name=value");
      }
      seen.push_back({item.substr(0, equals), item.substr(equals + 1)});
      PACE_RETURN_IF_ERROR(CheckOnce(seen, owner));
      PACE_RETURN_IF_ERROR(named.SetOption(seen.back().name, PlainText{seen.back().value}, owner));
    }
    return Status::Ok();
  };
  return field;
}

Field Field::AtLeast(double minimum, std::string hint) && {
  minimum_ = minimum;
  minimum_hint_ = std::move(hint);
  return std::move(*this);
}

Field Field::AtMost(double maximum, std::string hint) && {
  maximum_ = maximum;
  maximum_hint_ = std::move(hint);
  return std::move(*this);
}

Field Field::Above(double minimum, std::string hint) && {
  minimum_ = minimum;
  open_minimum_ = true;
  minimum_hint_ = std::move(hint);
  return std::move(*this);
}

Field Field::OrText(const std::string& form, FieldAccess<std::string> text) && {
  const std::string prefix = form.substr(0, form.find(':') + 1);
  type_ += " or " + form;
  get_ = [text, get = get_] { return text.get().empty() ? get() : Quoted(text.get()); };
  set_ = [text, prefix, form, set = set_](const Field& self, const FieldValue& given,
                                          std::string_view full_key) -> Status {
    const Result<std::string> given_text = ToText(given);
    if (given_text.ok() && given_text->starts_with(prefix)) {
      text.set(*given_text);
      return Status::Ok();
    }
    const Status status = set(self, given, full_key);
    if (!status.ok()) return {status.code(), Concat(status.message(), " or ", form)};
    text.set("");
    return status;
  };
  return std::move(*this);
}

Field Field::OrInfinite() && {
  or_infinite_ = true;
  return std::move(*this);
}

Status Field::CheckBounds(const std::optional<double>& value) const {
  if (!value.has_value()) return Status::Ok();
  const auto with_hint = [](const std::string& hint) {
    return hint.empty() ? hint : " (" + hint + ")";
  };
  if (std::isnan(*value) || (std::isinf(*value) && !or_infinite_)) {
    return InvalidArgument("must be a finite number");
  }
  if (minimum_.has_value() && (open_minimum_ ? !(*value > *minimum_) : !(*value >= *minimum_))) {
    return InvalidArgument("must be ", open_minimum_ ? "> " : ">= ", *minimum_,
                           with_hint(minimum_hint_));
  }
  if (maximum_.has_value() && !(*value <= *maximum_)) {
    return InvalidArgument("must be <= ", *maximum_, with_hint(maximum_hint_));
  }
  return Status::Ok();
}

Status Field::Set(const FieldValue& value, std::string_view full_key) const {
  return set_(*this, value, full_key);
}

Status Field::SetOption(std::string_view option, const FieldValue& value,
                        std::string_view full_key) const {
  const std::vector<Field> options = choice_->options();
  PACE_ASSIGN_OR_RETURN(const Field* const field,
                        FindField(options, option, full_key, Concat(full_key, " = ", Get())));
  PACE_RETURN_IF_ERROR(field->Set(value, Concat(full_key, ".", option)));
  std::vector<std::string>& given = *choice_->given;
  if (std::find(given.begin(), given.end(), option) == given.end()) given.emplace_back(option);
  return Status::Ok();
}

Status Field::Check(std::string_view full_key) const {
  const Status status = CheckBounds(number_());
  return status.ok() ? status : Refused(status, PlainText{Get()}, full_key);
}

Result<const Field*> FindField(const std::vector<Field>& fields, std::string_view key,
                               std::string_view owner, std::string_view what) {
  if (const Field* const field = Find(fields, key)) return field;
  std::vector<std::string> keys;
  for (const Field& field : fields) keys.push_back(field.key());
  const std::vector<std::string_view> all(keys.begin(), keys.end());
  const std::string unknown =
      Concat("unknown key ", owner, owner.empty() ? "" : ".", Printable(key));
  if (all.empty()) return InvalidArgument(unknown, " (", what, " has no options)");
  return InvalidArgument(unknown, " (nearest: ", Nearest(key, keys), "; ", what, " has ",
                         JoinNames(all), ")");
}

Status SetFields(const std::vector<Field>& fields, const NamedSettings& settings,
                 std::string_view owner) {
  PACE_RETURN_IF_ERROR(CheckOnce(settings, owner));
  for (const NamedSetting& setting : settings) {
    PACE_ASSIGN_OR_RETURN(const Field* const field, FindField(fields, setting.name, owner, owner));
    PACE_RETURN_IF_ERROR(field->Set(PlainText{setting.value}, Concat(owner, ".", setting.name)));
  }
  return Status::Ok();
}

Status CheckFields(const std::vector<Field>& fields, std::string_view owner) {
  for (const Field& field : fields) {
    PACE_RETURN_IF_ERROR(field.Check(Concat(owner, ".", field.key())));
  }
  return Status::Ok();
}

std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  word = word.substr(0, kMaxNearestBytes);
  std::string best;
  size_t best_distance = std::string::npos;
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t i = 0; i < row.size(); ++i) row[i] = i;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i);
      for (size_t k = 1; k <= candidate.size(); ++k) {
        const size_t substitute = diagonal + (word[i - 1] == candidate[k - 1] ? 0 : 1);
        diagonal = std::exchange(row[k], std::min({row[k] + 1, row[k - 1] + 1, substitute}));
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace pace
