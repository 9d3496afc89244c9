#include "compare/cell.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "lab/lab.h"

namespace pace {
namespace {

// FNV-1a, 64 bits: to tell files apart, not against forgery.
class Digest {
 public:
  void Add(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) state_ = (state_ ^ bytes[i]) * 0x100000001b3ULL;
  }
  std::string Text() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[(state_ >> shift) & 15];
    return out;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325ULL;
};

std::string DigestOf(const WeightSet& weights) {
  Digest digest;
  for (const auto& [name, view] : weights.views()) {
    digest.Add(name.data(), name.size());
    digest.Add(view.bytes.data(), view.bytes.size());
  }
  return digest.Text();
}

// "section.key: value", a line each.
std::set<std::string> EntriesOf(const Settings& settings) {
  std::set<std::string> entries;
  std::istringstream text(ToYaml(settings));
  std::string section;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(" ")) {
      entries.insert(Concat(section, ".", line, "\n"));
    } else {
      section = line;
    }
  }
  return entries;
}

// What is not as it is by default: a setting that is added later, and has no
// effect by default, changes no digest.
std::set<std::string> EntriesThatDiffer(const Settings& settings) {
  static const std::set<std::string> defaults = EntriesOf(Settings());
  std::set<std::string> entries = EntriesOf(settings);
  for (const std::string& entry : defaults) entries.erase(entry);
  return entries;
}

class CellObserver final : public RunObserver {
 public:
  CellObserver(const CellOptions& options, int64_t num_steps, Cell& cell)
      : options_(options), num_steps_(num_steps), cell_(cell) {}

  void OnStep(int64_t done, const MetricsRow&) override {
    steps_done_ = done;
    if (options_.progress) options_.progress(done, num_steps_);
  }
  void OnGroupDrawn(const GroupSummary&, const Decision& decision,
                    const PayloadStats& stats) override {
    if (!options_.keep_groups) return;
    const std::array<double, kGroupColumns.size()> values = {
        static_cast<double>(steps_done_),
        decision.verdict == Verdict::kAdmit ? 1.0 : 0.0,
        decision.waiting,
        decision.generation,
        decision.score,
        stats.length,
        stats.reward};
    for (size_t i = 0; i < values.size(); ++i) {
      cell_.groups[std::string(kGroupColumns[i])].push_back(values[i]);
    }
  }

 private:
  const CellOptions& options_;
  const int64_t num_steps_;
  Cell& cell_;
  int64_t steps_done_ = 0;
};

CellEvaluation EvaluationOf(PolicyVersion version, const std::vector<BenchmarkScore>& scores,
                            const std::vector<double>& times) {
  CellEvaluation out;
  out.step = version.step();
  // Version n exists from the end of step n - 1 on.
  if (out.step > 0) out.time = times[static_cast<size_t>(out.step) - 1];
  for (const BenchmarkScore& score : scores) {
    out.accuracy += score.mean / static_cast<double>(scores.size());
    out.length += score.mean_length / static_cast<double>(scores.size());
  }
  return out;
}

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

bool Cell::operator==(const Cell& other) const {
  return CellToJson(*this) == CellToJson(other);
}

std::string DigestOf(const Settings& settings, const Policy& policy) {
  Digest digest;
  for (const std::string& entry : EntriesThatDiffer(settings)) {
    digest.Add(entry.data(), entry.size());
  }
  const std::string weights = DigestOf(policy.weights);
  digest.Add(weights.data(), weights.size());
  return digest.Text();
}

Result<Cell> RunCell(const CellId& id, const Settings& settings, const Policy& policy,
                     const CellOptions& options) {
  Cell cell;
  cell.id = id;
  CellObserver observer(options, settings.run.num_steps, cell);
  Result<RunResult> run = RunLab(settings, policy, {.observer = &observer});
  if (!run.ok()) return run.status().At(Concat("arm ", id.arm, ", seed ", id.seed));
  cell.settings_digest = DigestOf(settings, policy);
  cell.weights_digest = DigestOf(run->weights);
  const auto fill = [&](std::string_view name) {
    std::vector<double>& column = cell.steps[std::string(name)];
    for (const MetricsRow& row : run->rows) {
      column.push_back(Find(row, name).value_or(std::numeric_limits<double>::quiet_NaN()));
    }
  };
  for (const std::string_view name : kStepColumns) fill(name);
  if (settings.tools.use != ToolUse::kNone) {
    for (const std::string_view name : kToolColumns) fill(name);
  }
  for (const auto& [version, scores] : run->evaluations) {
    cell.evaluations.push_back(EvaluationOf(version, scores, cell.steps["time"]));
  }
  // What is used is what is written, so that a resumed comparison is the same.
  return ParseCell(CellToJson(cell));
}

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
