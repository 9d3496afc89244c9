#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "compare/cell.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"

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

void PutColumns(JsonWriter& json, std::string_view key, const Cell::Columns& columns) {
  json.Key(key);
  json.BeginObject();
  for (const auto& [name, values] : columns) {
    json.Key(name);
    json.BeginArray();
    for (const double value : values) json.Value(Rounded(value));
    json.EndArray();
  }
  json.EndObject();
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

void ScanColumn(JsonScanner& scan, std::vector<double>& out) {
  scan.EnterArray();
  while (scan.NextItem()) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (!scan.TakeNull()) scan.Real(-kLargest, kLargest, "", value);
    out.push_back(value);
  }
}

void ScanEvaluation(JsonScanner& scan, CellEvaluation& out) {
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "step") {
      scan.Integer(0, kMaxSteps, "", out.step);
    } else if (scan.key() == "time") {
      scan.Real(0, kLargest, "", out.time);
    } else if (scan.key() == "accuracy") {
      scan.Real(0, 1, "a share", out.accuracy);
    } else if (scan.key() == "length") {
      scan.Real(0, kLargest, "", out.length);
    } else {
      scan.FailUnknownKey();
    }
  }
}

void ScanCell(JsonScanner& scan, Cell& cell) {
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "arm") {
      scan.Text(cell.id.arm);
    } else if (scan.key() == "seed") {
      scan.Integer(0, int64_t{1} << 53, "", cell.id.seed);
    } else if (scan.key() == "settings") {
      scan.Text(cell.settings_digest);
    } else if (scan.key() == "weights") {
      scan.Text(cell.weights_digest);
    } else if (scan.key() == "evaluations") {
      scan.EnterArray();
      while (scan.NextItem()) ScanEvaluation(scan, cell.evaluations.emplace_back());
    } else if (scan.key() == "steps" || scan.key() == "groups") {
      Cell::Columns& columns = scan.key() == "steps" ? cell.steps : cell.groups;
      scan.EnterObject();
      while (scan.NextKey()) ScanColumn(scan, columns[std::string(scan.key())]);
    } else {
      scan.FailUnknownKey();
    }
  }
}

}  // namespace

std::string CellToJson(const Cell& cell) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("arm", cell.id.arm);
  json.Put("seed", cell.id.seed);
  json.Put("settings", cell.settings_digest);
  json.Put("weights", cell.weights_digest);
  json.Key("evaluations");
  json.BeginArray();
  for (const CellEvaluation& evaluation : cell.evaluations) {
    json.BeginObject();
    json.Put("step", evaluation.step);
    json.Put("time", Rounded(evaluation.time));
    json.Put("accuracy", Rounded(evaluation.accuracy));
    json.Put("length", Rounded(evaluation.length));
    json.EndObject();
  }
  json.EndArray();
  PutColumns(json, "steps", cell.steps);
  if (!cell.groups.empty()) PutColumns(json, "groups", cell.groups);
  json.EndObject();
  return out;
}

Result<Cell> ParseCell(std::string_view text) {
  JsonScanner scan(text);
  Cell cell;
  ScanCell(scan, cell);
  scan.End();
  if (!scan.ok()) return scan.status();
  if (cell.id.arm.empty()) return DataLoss("arm: must be given");
  PACE_RETURN_IF_ERROR(CheckLengths(cell.steps, "steps"));
  PACE_RETURN_IF_ERROR(CheckLengths(cell.groups, "groups"));
  return cell;
}

Result<std::vector<Cell>> ReadCells(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(path, ": cannot be opened");
  std::vector<Cell> cells;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (file.eof() || line.size() > kMaxLine) break;  // no line break: cut off
    Result<Cell> cell = ParseCell(line);
    if (!cell.ok()) return cell.status().At(Concat(path, ":", number));
    cells.push_back(std::move(cell).value());
  }
  return cells;
}

}  // namespace pace
