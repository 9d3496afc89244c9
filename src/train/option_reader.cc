#include "train/option_reader.h"

#include <charconv>
#include <cmath>

namespace pace {
namespace {

template <typename Number>
bool Parse(const std::string& text, Number& out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

}  // namespace

OptionReader::OptionReader(std::string_view owner, const NamedSettings& settings)
    : owner_(owner), settings_(settings), read_(settings.size(), false) {}

const std::string* OptionReader::Take(std::string_view name) {
  const std::string* found = nullptr;
  for (size_t i = 0; i < settings_.size(); ++i) {
    if (settings_[i].name != name) continue;
    if (found != nullptr) Fail(name, settings_[i].value, "is given twice");
    found = &settings_[i].value;
    read_[i] = true;
  }
  return found;
}

void OptionReader::Fail(std::string_view name, std::string_view value, std::string_view rule) {
  if (status_.ok()) status_ = InvalidArgument(owner_, ".", name, " = ", value, ": ", rule);
}

void OptionReader::Real(std::string_view name, double& out) {
  const std::string* value = Take(name);
  if (value == nullptr) return;
  double number = 0;
  if (!Parse(*value, number) || std::isnan(number)) return Fail(name, *value, "must be a number");
  out = number;
}

void OptionReader::Integer(std::string_view name, int64_t& out) {
  const std::string* value = Take(name);
  if (value == nullptr) return;
  int64_t number = 0;
  if (!Parse(*value, number)) return Fail(name, *value, "must be an integer");
  out = number;
}

void OptionReader::Bool(std::string_view name, bool& out) {
  Choice<bool>(name, {{"true", true}, {"false", false}}, out);
}

void OptionReader::OptionalReal(std::string_view name, std::optional<double>& out) {
  const std::string* value = Take(name);
  if (value == nullptr) return;
  if (*value == "none") {
    out.reset();
    return;
  }
  double number = 0;
  if (!Parse(*value, number) || std::isnan(number)) {
    return Fail(name, *value, "must be a number or none");
  }
  out = number;
}

Status OptionReader::Finish() {
  for (size_t i = 0; i < settings_.size(); ++i) {
    if (!read_[i]) Fail(settings_[i].name, settings_[i].value, "is no setting of " + owner_);
  }
  return status_;
}

}  // namespace pace
