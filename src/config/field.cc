#include "config/field.h"

#include <algorithm>
#include <charconv>
#include <cmath>
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

Result<double> ToReal(const FieldValue& value) {
  if (const auto* typed = std::get_if<int64_t>(&value)) return static_cast<double>(*typed);
  std::optional<double> real;
  if (const auto* typed = std::get_if<double>(&value)) real = *typed;
  if (const auto* plain = std::get_if<PlainText>(&value)) {
    double parsed = 0;
    const char* end = plain->text.data() + plain->text.size();
    const auto [stop, error] = std::from_chars(plain->text.data(), end, parsed);
    if (error == std::errc() && stop == end) real = parsed;
  }
  if (!real.has_value()) return InvalidArgument("must be a number");
  if (!std::isfinite(*real)) return InvalidArgument("must be a finite number");
  return *real;
}

std::string Shown(const FieldValue& value) {
  if (const auto* plain = std::get_if<PlainText>(&value)) return Printable(plain->text);
  if (const auto* typed = std::get_if<bool>(&value)) return *typed ? "true" : "false";
  if (const auto* typed = std::get_if<int64_t>(&value)) return Concat(*typed);
  if (const auto* typed = std::get_if<double>(&value)) return Concat(*typed);
  if (const auto* typed = std::get_if<std::string>(&value)) return "\"" + Printable(*typed) + "\"";
  if (std::holds_alternative<std::vector<std::string>>(value)) return "[...]";
  return "null";
}

bool IsAuto(const FieldValue& value) {
  if (std::holds_alternative<std::nullptr_t>(value)) return true;
  if (const auto* plain = std::get_if<PlainText>(&value)) return plain->text == "auto";
  if (const auto* typed = std::get_if<std::string>(&value)) return *typed == "auto";
  return false;
}

std::optional<std::string> ToText(const FieldValue& value) {
  if (const auto* plain = std::get_if<PlainText>(&value)) return plain->text;
  if (const auto* typed = std::get_if<std::string>(&value)) return *typed;
  return std::nullopt;
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

}  // namespace

Field Field::Bool(std::string key, bool& value, std::string doc) {
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = "true or false";
  field.get_ = [&value] { return value ? "true" : "false"; };
  field.set_ = [&value](const Field&, const FieldValue& given) -> Status {
    const auto text = ToText(given);
    if (const auto* typed = std::get_if<bool>(&given)) {
      value = *typed;
    } else if (std::holds_alternative<PlainText>(given) && (*text == "true" || *text == "false")) {
      value = *text == "true";
    } else {
      return InvalidArgument("must be true or false");
    }
    return Status::Ok();
  };
  return field;
}

Field Field::Int(std::string key, int64_t& value, std::string doc) {
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = "integer";
  field.maximum_ = kLargestInteger;
  field.get_ = [&value] { return Concat(value); };
  field.set_ = [&value](const Field& self, const FieldValue& given) -> Status {
    PACE_ASSIGN_OR_RETURN(const auto parsed, ToInt(given));
    PACE_RETURN_IF_ERROR(self.CheckBounds(static_cast<double>(parsed)));
    value = parsed;
    return Status::Ok();
  };
  return field;
}

Field Field::Real(std::string key, double& value, std::string doc) {
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = "number";
  field.get_ = [&value] { return Concat(value); };
  field.set_ = [&value](const Field& self, const FieldValue& given) -> Status {
    PACE_ASSIGN_OR_RETURN(const auto parsed, ToReal(given));
    PACE_RETURN_IF_ERROR(self.CheckBounds(parsed));
    value = parsed;
    return Status::Ok();
  };
  return field;
}

Field Field::Text(std::string key, std::string& value, std::string doc) {
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = "text";
  field.get_ = [&value] { return Quoted(value); };
  field.set_ = [&value](const Field&, const FieldValue& given) -> Status {
    const auto text = ToText(given);
    if (!text.has_value()) return InvalidArgument("must be text");
    value = *text;
    return Status::Ok();
  };
  return field;
}

Field Field::TextList(std::string key, std::vector<std::string>& value, std::string doc) {
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = "list of names";
  field.get_ = [&value] {
    std::string out = "[";
    for (const std::string& item : value) {
      if (out.size() > 1) out += ", ";
      out += Quoted(item);
    }
    return out + "]";
  };
  field.set_ = [&value](const Field&, const FieldValue& given) -> Status {
    if (const auto* list = std::get_if<std::vector<std::string>>(&given)) {
      value = *list;
      return Status::Ok();
    }
    const auto text = ToText(given);
    if (!text.has_value()) return InvalidArgument("must be a list of names");
    PACE_ASSIGN_OR_RETURN(value, ParseTextList(*text));
    return Status::Ok();
  };
  return field;
}

Field Field::OptionalInt(std::string key, std::optional<int64_t>& value, std::string doc) {
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = "integer or auto";
  field.maximum_ = kLargestInteger;
  field.get_ = [&value] { return value.has_value() ? Concat(*value) : std::string("auto"); };
  field.set_ = [&value](const Field& self, const FieldValue& given) -> Status {
    if (IsAuto(given)) {
      value.reset();
      return Status::Ok();
    }
    const auto parsed = ToInt(given);
    if (!parsed.ok()) return InvalidArgument("must be an integer or auto");
    PACE_RETURN_IF_ERROR(self.CheckBounds(static_cast<double>(*parsed)));
    value = *parsed;
    return Status::Ok();
  };
  return field;
}

Field Field::OptionalReal(std::string key, std::optional<double>& value, std::string doc) {
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = "number or auto";
  field.get_ = [&value] { return value.has_value() ? Concat(*value) : std::string("auto"); };
  field.set_ = [&value](const Field& self, const FieldValue& given) -> Status {
    if (IsAuto(given)) {
      value.reset();
      return Status::Ok();
    }
    PACE_ASSIGN_OR_RETURN(const auto parsed, ToReal(given));
    PACE_RETURN_IF_ERROR(self.CheckBounds(parsed));
    value = parsed;
    return Status::Ok();
  };
  return field;
}

Field Field::EnumOf(std::string key, std::span<const std::string_view> names,
                    std::function<size_t()> get, std::function<void(size_t)> set, std::string doc) {
  std::string choices;
  for (const std::string_view name : names) {
    if (!choices.empty()) choices += ", ";
    choices += name;
  }
  Field field;
  field.key_ = std::move(key);
  field.doc_ = std::move(doc);
  field.type_ = "one of " + choices;
  field.get_ = [names, get = std::move(get)] { return std::string(names[get()]); };
  field.set_ = [names, set = std::move(set), choices](const Field&,
                                                      const FieldValue& given) -> Status {
    const auto text = ToText(given);
    for (size_t i = 0; text.has_value() && i < names.size(); ++i) {
      if (names[i] == *text) {
        set(i);
        return Status::Ok();
      }
    }
    return InvalidArgument("must be one of ", choices);
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

Status Field::CheckBounds(double value) const {
  const auto with_hint = [](const std::string& hint) {
    return hint.empty() ? hint : " (" + hint + ")";
  };
  if (minimum_.has_value() && (open_minimum_ ? !(value > *minimum_) : !(value >= *minimum_))) {
    return InvalidArgument("must be ", open_minimum_ ? "> " : ">= ", *minimum_,
                           with_hint(minimum_hint_));
  }
  if (maximum_.has_value() && !(value <= *maximum_)) {
    return InvalidArgument("must be <= ", *maximum_, with_hint(maximum_hint_));
  }
  return Status::Ok();
}

Status Field::Set(const FieldValue& value, std::string_view full_key) const {
  const Status status = set_(*this, value);
  if (status.ok()) return status;
  return {status.code(), Concat(full_key, " = ", Shown(value), ": ", status.message())};
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
