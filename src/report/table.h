// Table: rows of text as an accessible HTML table that scrolls by itself when
// the page is narrow.
#ifndef PACE_REPORT_TABLE_H_
#define PACE_REPORT_TABLE_H_

#include <optional>
#include <string>
#include <vector>

namespace pace {

struct TableRow {
  std::string head;
  std::vector<std::string> cells = {};  // as many as the table has columns
  std::optional<size_t> run = {};       // shows the run's swatch
};

struct Table {
  std::string caption;
  std::string corner;  // above the row heads
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
};

// All text is escaped here.
std::string RenderTable(const Table& table);

}  // namespace pace

#endif  // PACE_REPORT_TABLE_H_
