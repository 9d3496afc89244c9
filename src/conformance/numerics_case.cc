#include "conformance/numerics_case.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "conformance/case_file.h"

namespace pace {

std::optional<double> NumberOf(const Value& value) {
  if (value.is_integer()) return static_cast<double>(value.integer());
  if (value.is_real()) return value.real();
  if (value.is_bool()) return value.boolean() ? 1 : 0;
  if (!value.is_text()) return std::nullopt;
  if (value.text() == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value.text() == "Infinity") return std::numeric_limits<double>::infinity();
  if (value.text() == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

bool AppendNumbers(const Value& value, std::vector<double>& out) {
  if (const std::optional<double> number = NumberOf(value)) {
    out.push_back(*number);
    return true;
  }
  if (!value.is_list()) return false;
  for (const Value& item : value.list()) {
    if (!AppendNumbers(item, out)) return false;
  }
  return true;
}

NumericsCase::NumericsCase(const Value& entry, std::string where)
    : entry_(entry), where_(std::move(where)) {
  const Value quirk = FieldOf(entry, "quirk");
  has_quirk_ = quirk.is_text();
  accepts_zero_ = has_quirk_ && quirk.text().find("Accept exact 0") != std::string::npos;
  if (is_single_precision()) tolerance_ = kSinglePrecision;
}

bool NumericsCase::is_single_precision() const {
  return ConfigText("dtype") == "float32";
}

Value NumericsCase::Expected(std::string_view name) const {
  return FieldOf(FieldOf(entry_, "expected"), name);
}

Value NumericsCase::Input(std::string_view name) const {
  return FieldOf(FieldOf(entry_, "inputs"), name);
}

Value NumericsCase::Config(std::string_view name) const {
  return FieldOf(FieldOf(entry_, "config"), name);
}

Value NumericsCase::Config() const {
  return FieldOf(entry_, "config");
}

std::string NumericsCase::ConfigText(std::string_view name) const {
  const Value value = Config(name);
  return value.is_text() ? value.text() : "";
}

std::optional<double> NumericsCase::ConfigReal(std::string_view name) const {
  return NumberOf(Config(name));
}

bool NumericsCase::ConfigBool(std::string_view name, bool fallback) const {
  const Value value = Config(name);
  return value.is_bool() ? value.boolean() : fallback;
}

NamedSettings NumericsCase::Settings(std::string_view words) const {
  NamedSettings settings;
  std::istringstream stream{std::string(words)};
  for (std::string word; stream >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      settings.push_back({word, Concat(has_quirk_)});
    } else if (word[equals - 1] == ':') {
      settings.push_back({word.substr(0, equals - 1), word.substr(equals + 1)});
    } else if (const Value value = Config(word.substr(equals + 1));
               !value.is_undefined() && !value.is_none()) {
      settings.push_back({word.substr(0, equals), value.is_text() ? value.text()
                                                  : value.is_bool()
                                                      ? Concat(value.boolean())
                                                      : Concat(NumberOf(value).value_or(0))});
    }
  }
  return settings;
}

std::vector<double> NumericsCase::Numbers(std::string_view input) {
  std::vector<double> numbers;
  if (!AppendNumbers(Input(input), numbers)) {
    Fail(Concat("inputs.", input, ": must be an array of numbers"));
  }
  return numbers;
}

std::vector<double> NumericsCase::OptionalNumbers(std::string_view input) {
  return Input(input).is_undefined() ? std::vector<double>() : Numbers(input);
}

std::vector<int64_t> NumericsCase::Integers(std::string_view input) {
  std::vector<int64_t> integers;
  for (const double number : Numbers(input)) integers.push_back(static_cast<int64_t>(number));
  return integers;
}

bool NumericsCase::Near(double ours, double theirs) const {
  if (std::isnan(theirs)) return std::isnan(ours);
  if (accepts_zero_ && ours == 0) return true;
  if (ours == theirs) return true;
  const double scale = std::max(std::abs(ours), std::abs(theirs));
  return std::isfinite(scale) &&
         std::abs(ours - theirs) <= std::max(tolerance_.absolute, tolerance_.relative * scale);
}

void NumericsCase::Compare(std::string_view field, double ours, const Value& theirs) {
  const std::optional<double> number = NumberOf(theirs);
  if (!number.has_value()) return Fail(Concat("expected.", field, ": must be a number"));
  if (!Near(ours, *number)) Fail(Concat(field, ": ours ", ours, ", expected ", *number));
}

void NumericsCase::CompareAll(std::string_view field, std::span<const double> ours,
                              const Value& theirs, std::span<const uint8_t> mask) {
  std::vector<double> numbers;
  if (!AppendNumbers(theirs, numbers)) {
    return Fail(Concat("expected.", field, ": must be an array of numbers"));
  }
  if (numbers.size() != ours.size()) {
    return Fail(Concat(field, ": ours has ", ours.size(), " numbers, expected ", numbers.size()));
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!mask.empty() && mask[i] == 0) continue;
    if (Near(ours[i], numbers[i])) continue;
    return Fail(Concat(field, "[", i, "]: ours ", ours[i], ", expected ", numbers[i]));
  }
}

void NumericsCase::CompareMetric(const MetricList& metrics, const std::string& ours,
                                 const Value& theirs) {
  const Metric* metric = FindMetric(metrics, ours);
  if (metric != nullptr && !theirs.is_undefined()) Compare(ours, metric->value, theirs);
}

bool NumericsCase::Check(const Status& status) {
  if (status.ok() == expects_error()) {
    Fail(status.ok() ? "must be an error, as the peer raised one" : status.message());
  }
  return status.ok() && failure_.empty();
}

void NumericsCase::Fail(std::string message) {
  if (failure_.empty()) failure_ = std::move(message);
}

void NumericsCase::Finish(Tally& tally) const {
  if (!skipped_.empty()) {
    tally.Skip();
    tally.notes.push_back(Concat("skipped ", where_, ": ", skipped_));
    return;
  }
  failure_.empty() ? tally.Pass() : tally.Fail(Concat(where_, ": ", failure_));
}

PaddedLayout ReadLayout(NumericsCase& entry) {
  PaddedLayout padded;
  for (const double bit : entry.Numbers("response_mask")) padded.mask.push_back(bit != 0);
  if (!entry.Input("cu_seqlens").is_undefined()) {
    padded.offsets = entry.Integers("cu_seqlens");
  } else {
    const Value rows = entry.Input("response_mask");
    const size_t count = rows.is_list() ? rows.list().size() : 0;
    if (count == 0 || padded.mask.size() % count != 0) {
      entry.Fail("inputs.response_mask: must be rows of one length");
      return {};
    }
    padded.width = static_cast<int64_t>(padded.mask.size() / count);
    for (size_t row = 0; row <= count; ++row) {
      padded.offsets.push_back(static_cast<int64_t>(row) * padded.width);
    }
  }
  if (!entry.Input("index").is_undefined()) padded.groups = entry.Integers("index");
  const Status status = padded.layout().Validate();
  if (status.ok()) return padded;
  entry.Fail("inputs: " + status.message());
  return {};
}

}  // namespace pace
