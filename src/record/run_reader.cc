#include "record/run_reader.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "core/json_scanner.h"
#include "record/line_reader.h"
#include "record/run_files.h"

namespace pace {
namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kMaxStep = 1'000'000'000'000;
constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();
constexpr double kMaxReal = std::numeric_limits<double>::max();
// Numbers of one verdict; they are kept as floats.
constexpr double kMaxDecisionValue = 1e30;
// A file with more different names is not metrics.
constexpr size_t kMaxMetricNames = 1024;
constexpr size_t kMaxSmallFile = size_t{1} << 20;

// All of a small file.
Result<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(path, ": cannot be opened (is this a run directory?)");
  std::string text(kMaxSmallFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Unavailable(path, ": cannot be read");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxSmallFile) {
    return InvalidArgument(path, ": larger than ", kMaxSmallFile, " bytes");
  }
  return text;
}

void ReadPaceVersion(JsonScanner& scan, RunManifest& manifest) {
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "version") {
      scan.Text(manifest.version);
    } else if (scan.key() == "commit") {
      scan.Text(manifest.commit);
    } else {
      scan.Skip();
    }
  }
}

// What drivers add about their machine.
bool ReadMachineKey(JsonScanner& scan, RunManifest& manifest) {
  const std::string_view key = scan.key();
  if (key == "machine") {
    scan.Text(manifest.machine);
  } else if (key == "device") {
    scan.Text(manifest.device);
  } else if (key == "torch") {
    scan.Text(manifest.torch);
  } else if (key == "determinism") {
    scan.Text(manifest.determinism);
  } else if (key == "threads") {
    scan.Integer(0, kMaxInteger, "", manifest.threads);
  } else if (key == "start") {
    scan.Integer(0, kMaxInteger, "", manifest.start);
  } else {
    return false;
  }
  return true;
}

// The fields of a decisions.jsonl line that are kept, in the order of its bits.
struct KeptReal {
  std::string_view key;
  float DecisionRow::* field;
};
constexpr std::array<KeptReal, 7> kKeptReals = {{
    {"waiting", &DecisionRow::waiting},
    {"waiting_assembly", &DecisionRow::waiting_assembly},
    {"generation", &DecisionRow::generation},
    {"score", &DecisionRow::score},
    {"length", &DecisionRow::length},
    {"reward", &DecisionRow::reward},
    {"turns", &DecisionRow::turns},
}};
constexpr std::array<std::string_view, 7> kUnkeptReals = {
    "lag", "percentile", "weight", "cutoff", "budget", "occupancy", "group"};

bool ReadKeptReal(JsonScanner& scan, DecisionRow& row, unsigned& seen) {
  for (size_t i = 0; i < kKeptReals.size(); ++i) {
    if (scan.key() != kKeptReals[i].key) continue;
    double value = 0;
    if (scan.Real(-kMaxDecisionValue, kMaxDecisionValue, "", value)) {
      row.*kKeptReals[i].field = static_cast<float>(value);
    }
    seen |= 1u << i;
    return true;
  }
  return false;
}

bool ReadUnkeptReal(JsonScanner& scan) {
  for (const std::string_view key : kUnkeptReals) {
    if (scan.key() != key) continue;
    double value = 0;
    if (!scan.TakeNull()) scan.Real(-kMaxReal, kMaxReal, "", value);
    return true;
  }
  return false;
}

void ReadVerdict(JsonScanner& scan, DecisionRow& row, std::string& word) {
  if (!scan.Text(word)) return;
  if (word == Name(Verdict::kAdmit)) {
    row.verdict = Verdict::kAdmit;
  } else if (word == Name(Verdict::kReject)) {
    row.verdict = Verdict::kReject;
  } else {
    scan.FailValue(word, "must be admit or reject", "");
  }
}

void ReadReason(JsonScanner& scan, DecisionRow& row, std::string& word) {
  if (!scan.Text(word)) return;
  const std::optional<Reason> reason = ReasonFromName(word);
  if (reason.has_value()) {
    row.reason = *reason;
  } else {
    scan.FailValue(word, "must be a reason that pace writes", "");
  }
}

void ReadPrefixScore(JsonScanner& scan, DecisionRow& row) {
  double value = 0;
  if (!scan.TakeNull() && scan.Real(0, kMaxDecisionValue, "", value)) {
    row.prefix_score = static_cast<float>(value);
  }
}

// Feeds every line to `parse`; a cut-off last line becomes a note.
template <typename Parse>
Status ReadLines(const std::string& directory, const std::string& file, RunData& run,
                 const Parse& parse) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(directory + "/" + file));
  while (true) {
    PACE_ASSIGN_OR_RETURN(const bool more, lines.Next());
    if (!more) return Status::Ok();
    const Result<bool> go_on = parse(lines.line());
    if (!go_on.ok() && !lines.complete()) {
      run.notes.push_back(Concat(file,
                                 " ends within its last line, which is left out: the run "
                                 "was cut short."));
      return Status::Ok();
    }
    if (!go_on.ok()) return lines.Locate(go_on.status());
    if (!*go_on) return Status::Ok();
  }
}

Status ReadRows(const std::string& directory, const std::string& file, RunData& run,
                MetricsTable& table) {
  return ReadLines(directory, file, run, [&table](std::string_view line) -> Result<bool> {
    PACE_RETURN_IF_ERROR(ParseMetricsLine(line, table));
    return true;
  });
}

bool IsThere(const std::string& directory, const char* file) {
  std::error_code ignored;
  return std::filesystem::exists(Concat(directory, "/", file), ignored);
}

// Runs that evaluate nothing have no such file.
Status ReadEvaluations(const std::string& directory, RunData& run) {
  if (!IsThere(directory, kEvaluationsFile)) return Status::Ok();
  return ReadRows(directory, kEvaluationsFile, run, run.evaluations);
}

// Runs without a model, and older ones, have no such file.
Status ReadResponses(const std::string& directory, RunData& run) {
  if (!IsThere(directory, kResponsesFile)) return Status::Ok();
  ResponsePicker picker;
  const auto take = [&](std::string_view line) -> Result<bool> {
    PACE_ASSIGN_OR_RETURN(ResponseRecord record, ParseResponseLine(line));
    if (record.benchmark.empty()) {
      if (!picker.Wants(record.head)) return true;
      CutTexts(record, kMaxShownTextBytes);
      picker.Add(std::move(record));
      return true;
    }
    std::vector<ResponseRecord>& evaluated = run.evaluated;
    if (!evaluated.empty() && evaluated.front().head.step != record.head.step) evaluated.clear();
    if (evaluated.size() == kMaxEvaluatedResponses) return true;
    CutTexts(record, kMaxShownTextBytes);
    evaluated.push_back(std::move(record));
    return true;
  };
  PACE_RETURN_IF_ERROR(ReadLines(directory, kResponsesFile, run, take));
  run.responses = picker.Take();
  return Status::Ok();
}

Status ReadWarnings(const std::string& directory, RunData& run) {
  if (!IsThere(directory, kWarningsFile)) return Status::Ok();
  return ReadLines(directory, kWarningsFile, run, [&run](std::string_view line) -> Result<bool> {
    PACE_ASSIGN_OR_RETURN(RunWarning warning, ParseWarningLine(line));
    run.warnings.push_back(std::move(warning));
    return run.warnings.size() < kMaxWarnings;
  });
}

Status ReadDecisions(const std::string& directory, RunData& run) {
  return ReadLines(directory, kDecisionsFile, run, [&run](std::string_view line) -> Result<bool> {
    PACE_ASSIGN_OR_RETURN(DecisionRow row, ParseDecisionLine(line));
    if (static_cast<int64_t>(run.decisions.size()) == kMaxDecisionRows) {
      run.notes.push_back(
          Concat("decisions.jsonl: only the first ", kMaxDecisionRows, " verdicts are shown."));
      return false;
    }
    run.decisions.push_back(row);
    return true;
  });
}

}  // namespace

Result<RunManifest> ParseManifest(std::string_view json) {
  RunManifest manifest;
  int64_t format = 0;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    if (key == "format") {
      scan.Integer(kFormat, kFormat, "this pace reads format 1", format);
    } else if (key == "name") {
      scan.Text(manifest.name);
    } else if (key == "driver") {
      scan.Text(manifest.driver);
    } else if (key == "method") {
      scan.Text(manifest.method);
    } else if (key == "record") {
      scan.Text(manifest.record);
    } else if (key == "seed") {
      scan.Integer(0, kMaxInteger, "", manifest.seed);
    } else if (key == "pace") {
      ReadPaceVersion(scan, manifest);
    } else if (!ReadMachineKey(scan, manifest)) {
      scan.Skip();  // a later pace may say more
    }
  }
  scan.End();
  if (format != kFormat) scan.Fail("missing key format");
  if (!scan.ok()) return scan.status();
  return manifest;
}

Status ParseMetricsLine(std::string_view line, MetricsTable& table) {
  JsonScanner scan(line);
  std::optional<int64_t> step;
  double value = 0;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (!step.has_value()) {
      if (scan.key() != "step") {
        scan.Fail("must come after step, the first key");
        break;
      }
      const int64_t last = table.num_rows() == 0 ? -1 : table.steps().back();
      int64_t given = 0;
      if (scan.Integer(last + 1, kMaxStep, "steps increase", given)) {
        step = given;
        table.AddRow(given);
      }
    } else if (!scan.TakeNull() && scan.Real(-kMaxReal, kMaxReal, "", value)) {
      table.Set(scan.key(), value);
      if (table.names().size() > kMaxMetricNames) scan.Fail("too many different names");
    }
  }
  scan.End();
  if (!step.has_value()) scan.Fail("missing key step");
  if (!scan.ok() && step.has_value()) table.DropLastRow();
  return scan.status();
}

Result<DecisionRow> ParseDecisionLine(std::string_view line) {
  JsonScanner scan(line);
  DecisionRow row;
  std::string word;
  unsigned seen = 0;
  bool has_step = false, has_verdict = false;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "step") {
      has_step = scan.Integer(0, kMaxStep, "", row.step);
    } else if (scan.key() == "verdict") {
      ReadVerdict(scan, row, word);
      has_verdict = true;
    } else if (scan.key() == "reason") {
      ReadReason(scan, row, word);
    } else if (scan.key() == "prefix_score") {
      ReadPrefixScore(scan, row);
    } else if (!ReadKeptReal(scan, row, seen) && !ReadUnkeptReal(scan)) {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!has_step) scan.Fail("missing key step");
  if (!has_verdict) scan.Fail("missing key verdict");
  for (size_t i = 0; i < kKeptReals.size(); ++i) {
    if ((seen & (1u << i)) == 0) scan.Fail(Concat("missing key ", kKeptReals[i].key));
  }
  if (!scan.ok()) return scan.status();
  return row;
}

Result<RunManifest> ReadManifest(const std::string& directory) {
  const std::string path = directory + "/manifest.json";
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  Result<RunManifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return manifest.status().At(path);
  return manifest;
}

Result<RunData> ReadRun(const std::string& directory) {
  RunData run;
  run.directory = directory;
  PACE_ASSIGN_OR_RETURN(run.manifest, ReadManifest(directory));

  const std::string config_path = directory + "/config.yaml";
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(config_path));
  PACE_RETURN_IF_ERROR(ApplyYaml(run.settings, text, config_path));

  PACE_RETURN_IF_ERROR(ReadRows(directory, kMetricsFile, run, run.metrics));
  PACE_RETURN_IF_ERROR(ReadEvaluations(directory, run));
  PACE_RETURN_IF_ERROR(ReadResponses(directory, run));
  PACE_RETURN_IF_ERROR(ReadWarnings(directory, run));
  run.has_decisions = run.manifest.record == "decisions" || run.manifest.record == "full";
  if (run.has_decisions) PACE_RETURN_IF_ERROR(ReadDecisions(directory, run));
  return run;
}

}  // namespace pace
