#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "compare/cell.h"
#include "core/json_record.h"
#include "core/line_reader.h"

namespace pace {
namespace {

constexpr double kLargest = 1e300;
constexpr int64_t kMaxSteps = 10'000'000;
constexpr size_t kMaxLine = size_t{1} << 30;

// Six digits are more than any run means, and keep the lines short.
double Rounded(double value) {
  if (!std::isfinite(value)) return value;
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return std::strtod(text, nullptr);
}

Status CheckLengths(const Cell::Columns& columns, std::string_view key) {
  for (const auto& [name, values] : columns) {
    const size_t others = columns.begin()->second.size();
    if (values.size() != others) {
      return DataLoss(key, ".", name, ": ", values.size(), " values, others have ", others);
    }
  }
  return Status::Ok();
}

// A number, written in six digits.
struct Short {
  double& value;
  double maximum = kLargest;
};
void WriteJson(JsonWriter& json, const Short& number) {
  json.Value(Rounded(number.value));
}
void ReadJson(JsonScanner& scan, const Short& number) {
  scan.Real(0, number.maximum, "", number.value);
}

// Columns of such numbers; one that is not finite is null.
struct ColumnsText {
  Cell::Columns& columns;
};
void WriteJson(JsonWriter& json, const ColumnsText& text) {
  json.BeginObject();
  for (const auto& [name, values] : text.columns) {
    json.Key(name);
    json.BeginArray();
    for (const double value : values) json.Value(Rounded(value));
    json.EndArray();
  }
  json.EndObject();
}
void ReadJson(JsonScanner& scan, const ColumnsText& text) {
  scan.EnterObject();
  while (scan.NextKey()) {
    const auto [column, is_new] = text.columns.try_emplace(std::string(scan.key()));
    if (!is_new) scan.Fail("given twice in one object");
    scan.EnterArray();
    while (scan.NextItem()) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (!scan.TakeNull()) scan.Real(-kLargest, kLargest, "", value);
      column->second.push_back(value);
    }
  }
}

}  // namespace

template <typename V>
void JsonKeys(V& v, CellEvaluation& evaluation) {
  v("step", Within(evaluation.step, 0, kMaxSteps));
  v("time", Short{evaluation.time});
  v("accuracy", Short{evaluation.accuracy, 1});
  v("length", Short{evaluation.length});
}
template <typename V>
void JsonKeys(V& v, Cell& cell) {
  v("arm", cell.id.arm);
  v("seed", cell.id.seed);
  v("settings", cell.settings_digest);
  v("weights", cell.weights_digest);
  v("evaluations", cell.evaluations);
  v("steps", ColumnsText{cell.steps});
  v.Optional("groups", ColumnsText{cell.groups}, !cell.groups.empty());
}

std::string CellToJson(const Cell& cell) {
  return JsonOf(cell);
}

Result<Cell> ParseCell(std::string_view text) {
  Cell cell;
  PACE_RETURN_IF_ERROR(FromJson(text, cell));
  if (cell.id.arm.empty()) return DataLoss("arm: must be given");
  PACE_RETURN_IF_ERROR(CheckLengths(cell.steps, "steps"));
  PACE_RETURN_IF_ERROR(CheckLengths(cell.groups, "groups"));
  return cell;
}

Result<std::vector<Cell>> ReadCells(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path, kMaxLine));
  std::vector<Cell> cells;
  while (true) {
    PACE_ASSIGN_OR_RETURN(const bool more, lines.Next());
    if (!more || !lines.complete()) return cells;  // a last line may be cut off
    Result<Cell> cell = ParseCell(lines.line());
    if (!cell.ok()) return lines.Locate(cell.status());
    cells.push_back(std::move(cell).value());
  }
}

}  // namespace pace
