#include "record/run_reader.h"

#include <limits>
#include <utility>

#include "core/json_record.h"
#include "record/run_files.h"

namespace pace {
namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kMaxStep = 1'000'000'000'000;
constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();
// Numbers of one verdict; they are kept as floats.
constexpr double kMaxDecisionValue = 1e30;
// A file with more different names is not metrics.
constexpr size_t kMaxMetricNames = 1024;
constexpr size_t kMaxSmallFile = size_t{1} << 20;

std::optional<Verdict> VerdictFromName(std::string_view name) {
  for (const Verdict verdict : {Verdict::kAdmit, Verdict::kReject}) {
    if (name == Name(verdict)) return verdict;
  }
  return std::nullopt;
}

// A number of a verdict that is kept as a float, and one that is read and dropped.
struct Kept {
  float& value;
};
struct Dropped {};
void ReadJson(JsonScanner& scan, const Kept& kept) {
  double value = kept.value;
  scan.Real(-kMaxDecisionValue, kMaxDecisionValue, "", value);
  kept.value = static_cast<float>(value);
}
void ReadJson(JsonScanner& scan, const Dropped&) {
  double ignored = 0;
  if (!scan.TakeNull()) scan.Real(-kLargestJsonReal, kLargestJsonReal, "", ignored);
}

// The texts that hold records.
struct ManifestText {
  RunManifest& manifest;
  int64_t format = kFormat;
};
struct BuildText {
  std::string& version;
  std::string& commit;
};
template <typename V>
void JsonKeys(V& v, BuildText& build) {
  v.Optional("version", build.version);
  v.Optional("commit", build.commit);
  v.SkipUnknown();
}
template <typename V>
void JsonKeys(V& v, ManifestText& text) {
  RunManifest& run = text.manifest;
  v("format", Within(text.format, kFormat, kFormat, "this pace reads format 1"));
  v.Optional("name", run.name);
  v.Optional("driver", run.driver);
  v.Optional("method", run.method);
  v.Optional("seed", Within(run.seed, 0, kMaxInteger));
  v.Optional("pace", BuildText{run.version, run.commit});
  v.Optional("machine", run.machine, !run.machine.empty());
  v.Optional("device", run.device, !run.device.empty());
  v.Optional("torch", run.torch, !run.torch.empty());
  v.Optional("threads", Within(run.threads, 0, kMaxInteger), run.threads != 0);
  v.Optional("determinism", run.determinism, !run.determinism.empty());
  v.Optional("start", Within(run.start, 0, kMaxInteger), run.start != 0);
  v.Optional("record", run.record);
  v.SkipUnknown();  // a later pace may say more
}

struct DecisionText {
  DecisionRow& row;
};
template <typename V>
void JsonKeys(V& v, DecisionText& text) {
  DecisionRow& row = text.row;
  v("step", Within(row.step, 0, kMaxStep));
  v("verdict", AsName(row.verdict, VerdictFromName, "must be admit or reject"));
  v.Optional("reason", AsName(row.reason, ReasonFromName, "must be a reason that pace writes"));
  v("waiting", Kept{row.waiting});
  v("waiting_assembly", Kept{row.waiting_assembly});
  v("generation", Kept{row.generation});
  v.Optional("prefix_score", row.prefix_score);
  v("score", Kept{row.score});
  v("length", Kept{row.length});
  v("reward", Kept{row.reward});
  v("turns", Kept{row.turns});
  for (const char* const key :
       {"lag", "percentile", "weight", "cutoff", "budget", "occupancy", "group"}) {
    v.Optional(key, Dropped{});
  }
}

// Feeds every line to `parse`; a cut-off last line becomes a note.
template <typename Parse>
Status ReadLines(const std::string& directory, const std::string& file, RunData& run,
                 const Parse& parse) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, OpenRecord(directory + "/" + file));
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
  return Files::Default().Exists(Concat(directory, "/", file));
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
  ManifestText text{manifest};
  PACE_RETURN_IF_ERROR(FromJson(json, text));
  return manifest;
}

std::string ManifestToJson(RunManifest manifest) {
  return JsonOf(ManifestText{manifest}) + "\n";
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
    } else if (!scan.TakeNull() && scan.Real(-kLargestJsonReal, kLargestJsonReal, "", value)) {
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
  DecisionRow row;
  DecisionText text{row};
  PACE_RETURN_IF_ERROR(FromJson(line, text));
  return row;
}

Result<RunManifest> ReadManifest(const std::string& directory) {
  const std::string path = directory + "/manifest.json";
  const Result<std::string> text = ReadFile(path, kMaxSmallFile);
  if (text.status().code() == StatusCode::kNotFound) {
    return NotFound(path, ": cannot be opened (is this a run directory?)");
  }
  if (!text.ok()) return text.status();
  Result<RunManifest> manifest = ParseManifest(*text);
  if (!manifest.ok()) return manifest.status().At(path);
  return manifest;
}

Result<RunData> ReadRun(const std::string& directory) {
  RunData run;
  run.directory = directory;
  PACE_ASSIGN_OR_RETURN(run.manifest, ReadManifest(directory));

  const std::string config_path = directory + "/config.yaml";
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(config_path, kMaxSmallFile));
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
