// Numbers that a single cell gives, by name; cell_summary.h says what they mean.
// A new one is a line of the table in cell_values.cc.
//
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_CELL_VALUES_H_
#define PACE_COMPARE_CELL_VALUES_H_

#include <span>
#include <string_view>
#include <vector>

#include "compare/cell.h"

namespace pace {

struct NamedValue {
  std::string_view name;
  double (*of)(const Cell&);  // NaN where the cell has none
};

std::span<const NamedValue> CellValues();
// Null when there is none of that name.
const NamedValue* FindCellValue(std::string_view name);

// Of a column over steps: null where there is none; the mean over the second half
// of the steps and over all, and the last value, NaN where there is none.
const std::vector<double>* ColumnOf(const Cell& cell, std::string_view name);
double SettledMean(const Cell& cell, std::string_view name);
double ColumnMean(const Cell& cell, std::string_view name);
double LastOf(const Cell& cell, std::string_view name);

// The first of the best; null without evaluations.
const CellEvaluation* BestEvaluation(const Cell& cell);

}  // namespace pace

#endif  // PACE_COMPARE_CELL_VALUES_H_
