#include "cli/bench_table.h"

#include <cstdio>
#include <limits>
#include <optional>

#include "core/json_scanner.h"
#include "terminal/terminal_text.h"

namespace pace {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

struct Row {
  std::string name, unit, limit_kind;
  std::optional<double> median, spread, limit;
  bool ok = true;
};

void ScanNumber(JsonScanner& scan, std::optional<double>& out) {
  if (scan.TakeNull()) return;
  scan.Real(-kLargest, kLargest, "", out.emplace());
}

void ScanRow(JsonScanner& scan, Row& row) {
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    if (key == "name") {
      scan.Text(row.name);
    } else if (key == "unit") {
      scan.Text(row.unit);
    } else if (key == "limit_kind") {
      scan.Text(row.limit_kind);
    } else if (key == "median") {
      ScanNumber(scan, row.median);
    } else if (key == "interquartile_range") {
      ScanNumber(scan, row.spread);
    } else if (key == "limit") {
      ScanNumber(scan, row.limit);
    } else if (key == "ok") {
      scan.Bool(row.ok);
    } else {
      scan.Skip();
    }
  }
}

// Four digits, whatever the size.
std::string Shown(std::optional<double> value) {
  if (!value.has_value()) return "";
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.4g", *value);
  return buffer;
}

}  // namespace

Result<std::string> BenchTable(std::string_view json) {
  TextTable table({"measurement", "median", "+-", "unit", "limit", ""});
  bool has_rows = false;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() != "measurements") {
      scan.Skip();
      continue;
    }
    has_rows = scan.EnterArray();
    while (scan.NextItem()) {
      Row row;
      ScanRow(scan, row);
      const std::string limit =
          row.limit.has_value()
              ? Concat(row.limit_kind == "at_least" ? ">= " : "<= ", Shown(row.limit))
              : "";
      table.Add({row.name, Shown(row.median), Shown(row.spread), row.unit, limit,
                 !row.limit.has_value() ? ""
                 : row.ok               ? "ok"
                                        : "FAILS"});
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!has_rows) return InvalidArgument("a benchmark without measurements");
  return table.Render();
}

}  // namespace pace
