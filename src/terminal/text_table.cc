#include "terminal/text_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pace {

std::string TextTable::Fixed(double value, int decimals) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", decimals, value);
  return buffer;
}

std::string TextTable::Percent(double share) {
  return Fixed(share * 100, 0) + " %";
}

std::string TextTable::Render() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      out += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    out += '\n';
  }
  return out;
}

}  // namespace pace
