#include "record/metrics_table.h"

#include <cmath>
#include <limits>

#include "core/check.h"

namespace pace {

void MetricsTable::AddRow(int64_t step) {
  steps_.push_back(step);
  next_ = 0;
}

void MetricsTable::Set(std::string_view name, double value) {
  // Rows name the same metrics in the same order, so the guess is mostly right.
  std::optional<size_t> index;
  for (size_t guess = next_; guess < names_.size() && guess < next_ + 4; ++guess) {
    if (names_[guess] == name) {
      index = guess;
      break;
    }
  }
  if (!index.has_value()) index = IndexOf(name);
  if (!index.has_value()) {
    index = names_.size();
    names_.emplace_back(name);
    columns_.emplace_back();
  }
  std::vector<double>& column = columns_[*index];
  column.resize(steps_.size(), std::numeric_limits<double>::quiet_NaN());
  column.back() = value;
  next_ = *index + 1;
}

void MetricsTable::DropLastRow() {
  PACE_CHECK(!steps_.empty(), "no row to take back");
  steps_.pop_back();
  for (std::vector<double>& column : columns_) {
    if (column.size() > steps_.size()) column.pop_back();
  }
}

std::optional<size_t> MetricsTable::IndexOf(std::string_view name) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return i;
  }
  return std::nullopt;
}

bool MetricsTable::Has(std::string_view name) const {
  const std::optional<size_t> index = IndexOf(name);
  return index.has_value() && !columns_[*index].empty();
}

std::optional<double> MetricsTable::At(std::string_view name, size_t row) const {
  const std::optional<size_t> index = IndexOf(name);
  if (!index.has_value() || row >= columns_[*index].size()) return std::nullopt;
  const double value = columns_[*index][row];
  return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

std::vector<std::optional<double>> MetricsTable::Column(std::string_view name) const {
  std::vector<std::optional<double>> out(num_rows());
  const std::optional<size_t> index = IndexOf(name);
  if (!index.has_value()) return out;
  const std::vector<double>& column = columns_[*index];
  for (size_t i = 0; i < column.size(); ++i) {
    if (!std::isnan(column[i])) out[i] = column[i];
  }
  return out;
}

std::optional<double> MetricsTable::Last(std::string_view name) const {
  const std::optional<size_t> index = IndexOf(name);
  if (!index.has_value()) return std::nullopt;
  const std::vector<double>& column = columns_[*index];
  for (size_t i = column.size(); i > 0; --i) {
    if (!std::isnan(column[i - 1])) return column[i - 1];
  }
  return std::nullopt;
}

std::optional<double> MetricsTable::Mean(std::string_view name, size_t first_row) const {
  const std::optional<size_t> index = IndexOf(name);
  if (!index.has_value()) return std::nullopt;
  double sum = 0;
  int64_t count = 0;
  for (size_t row = first_row; row < columns_[*index].size(); ++row) {
    const double value = columns_[*index][row];
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

}  // namespace pace
