// MetricsTable holds metrics.jsonl or eval.jsonl, column by column.
//
// Thread-safety: none.
#ifndef PACE_RECORD_METRICS_TABLE_H_
#define PACE_RECORD_METRICS_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pace {

class MetricsTable {
 public:
  // Adds a row, then its values. Names may differ from row to row; one given twice keeps the last.
  void AddRow(int64_t step);
  void Set(std::string_view name, double value);
  // Takes the last row back. REQUIRES: num_rows() > 0
  void DropLastRow();

  size_t num_rows() const { return steps_.size(); }
  const std::vector<int64_t>& steps() const { return steps_; }
  const std::vector<std::string>& names() const { return names_; }
  bool Has(std::string_view name) const;
  // The value in one row, if it is there.
  std::optional<double> At(std::string_view name, size_t row) const;
  // All rows under one name; absent values are empty.
  std::vector<std::optional<double>> Column(std::string_view name) const;
  // The value of the last row that has it.
  std::optional<double> Last(std::string_view name) const;
  // The mean over the rows from `first_row` on that have it.
  std::optional<double> Mean(std::string_view name, size_t first_row = 0) const;

 private:
  std::optional<size_t> IndexOf(std::string_view name) const;

  std::vector<int64_t> steps_;
  std::vector<std::string> names_;
  // One per name, as long as its last value; absent values are NaN, which no
  // value in the file can be.
  std::vector<std::vector<double>> columns_;
  size_t next_ = 0;  // where the next name is expected, as in the row before
};

}  // namespace pace

#endif  // PACE_RECORD_METRICS_TABLE_H_
