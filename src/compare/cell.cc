#include "compare/cell.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>

#include "core/json_record.h"
#include "core/line_reader.h"
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

constexpr double kLargest = 1e300;
constexpr int64_t kMaxSteps = 10'000'000;
constexpr size_t kMaxLine = size_t{1} << 30;
constexpr std::string_view kCountDigits =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
static_assert(kCountDigits.size() == kMaxProblemResponses + 1);

// Six digits are more than any run means, and keep the lines short.
double Rounded(double value) {
  if (!std::isfinite(value)) return value;
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return std::strtod(text, nullptr);
}

// The mean over benchmarks of greedy accuracies; none if any has none.
std::optional<double> GreedyOf(const std::vector<BenchmarkScore>& scores) {
  double sum = 0;
  for (const BenchmarkScore& score : scores) {
    if (!score.greedy.has_value()) return std::nullopt;
    sum += *score.greedy;
  }
  return scores.empty() ? std::nullopt
                        : std::optional(Rounded(sum / static_cast<double>(scores.size())));
}

void KeepProblems(const std::vector<BenchmarkScore>& scores, CellEvaluation& out) {
  double pass = 0;
  for (const BenchmarkScore& score : scores) {
    out.num_responses = score.num_responses;
    out.problems.push_back({score.num_correct});
    pass += score.pass / static_cast<double>(scores.size());
  }
  if (!scores.empty()) out.pass = Rounded(pass);
}

CellEvaluation EvaluationOf(PolicyVersion version, const std::vector<BenchmarkScore>& scores,
                            const std::vector<double>& times, bool keep_problems) {
  CellEvaluation out;
  out.step = version.step();
  // Version n exists from the end of step n - 1 on.
  if (out.step > 0) out.time = times[static_cast<size_t>(out.step) - 1];
  for (const BenchmarkScore& score : scores) {
    out.accuracy += score.mean / static_cast<double>(scores.size());
    out.length += score.mean_length / static_cast<double>(scores.size());
  }
  out.greedy = GreedyOf(scores);
  if (keep_problems) KeepProblems(scores, out);
  return out;
}

bool EvaluatesFirst(const Settings& settings) {
  return settings.run.evaluate_every > 0 && settings.run.evaluate_at_start;
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

// Every evaluation of a cell is of the same problems.
Status CheckProblems(const Cell& cell) {
  for (const CellEvaluation& evaluation : cell.evaluations) {
    const std::vector<ProblemCounts>& first = cell.evaluations.front().problems;
    const bool same = std::ranges::equal(
        evaluation.problems, first, {},
        [](const ProblemCounts& counts) { return counts.correct.size(); },
        [](const ProblemCounts& counts) { return counts.correct.size(); });
    if (!same) return DataLoss("evaluations.problems: not of the problems of the first evaluation");
    for (const ProblemCounts& counts : evaluation.problems) {
      for (const int64_t correct : counts.correct) {
        if (correct > evaluation.num_responses) {
          return DataLoss("evaluations.problems: ", correct, " correct responses of ",
                          evaluation.num_responses);
        }
      }
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

void WriteJson(JsonWriter& json, const ProblemCounts& counts) {
  std::string text;
  for (const int64_t correct : counts.correct) text += kCountDigits[static_cast<size_t>(correct)];
  json.Value(text);
}
void ReadJson(JsonScanner& scan, ProblemCounts& counts) {
  std::string text;
  if (!scan.Text(text)) return;
  for (const char digit : text) {
    const size_t correct = kCountDigits.find(digit);
    if (correct == std::string_view::npos) {
      scan.FailValue(text, "must hold digits and letters", "a character per problem");
      return;
    }
    counts.correct.push_back(static_cast<int64_t>(correct));
  }
}

template <typename V>
void JsonKeys(V& v, CellEvaluation& evaluation) {
  v("step", Within(evaluation.step, 0, kMaxSteps));
  v("time", Short{evaluation.time});
  v("accuracy", Short{evaluation.accuracy, 1});
  v("length", Short{evaluation.length});
  v.Optional("greedy", evaluation.greedy, evaluation.greedy.has_value());
  const bool kept = !evaluation.problems.empty();
  v.Optional("num_responses", Within(evaluation.num_responses, 0, kMaxProblemResponses), kept);
  v.Optional("pass", evaluation.pass, kept);
  v.Optional("problems", evaluation.problems, kept);
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

bool SharesFirstScores(const Settings& settings) {
  const Result<std::optional<OwnReward>> reward = OwnRewardOf(settings.task.verifier);
  return EvaluatesFirst(settings) && settings.policy.device == PolicyDevice::kCpu &&
         settings.tools.kind() == ToolUse::kNone && reward.ok() && !reward->has_value();
}

std::string FirstScoresKey(const Settings& settings, const Policy& policy) {
  // What an evaluation does not read: how a run produces, chooses and trains, and its clock.
  const Settings defaults;
  Settings read = settings;
  read.run = defaults.run;
  read.batch = defaults.batch;
  read.supply = defaults.supply;
  read.admission = defaults.admission;
  read.pool = defaults.pool;
  read.prefix = defaults.prefix;
  read.model = defaults.model;
  read.gpu = defaults.gpu;
  read.cluster = defaults.cluster;
  read.workload = defaults.workload;
  read.change = defaults.change;
  read.train = defaults.train;
  return DigestOf(read, policy);
}

Result<std::vector<BenchmarkScore>> FirstScores(const Settings& settings, const Policy& policy) {
  PACE_ASSIGN_OR_RETURN(Evaluator evaluator, Evaluator::Create(settings, policy, nullptr));
  return evaluator.Run(policy.weights);
}

Result<Cell> RunCell(const CellId& id, const Settings& settings, const Policy& policy,
                     const CellOptions& options) {
  Cell cell;
  cell.id = id;
  CellObserver observer(options, settings.run.num_steps, cell);
  const bool is_known = options.first_scores != nullptr && EvaluatesFirst(settings);
  Settings to_run = settings;
  if (is_known) to_run.run.evaluate_at_start = false;
  Result<RunResult> run = RunLab(to_run, policy, {.observer = &observer});
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
  if (settings.tools.kind() != ToolUse::kNone) {
    for (const std::string_view name : kToolColumns) fill(name);
  }
  if (is_known) {
    cell.evaluations.push_back(
        EvaluationOf(PolicyVersion(0), *options.first_scores, {}, options.keep_problems));
  }
  for (const auto& [version, scores] : run->evaluations) {
    cell.evaluations.push_back(
        EvaluationOf(version, scores, cell.steps["time"], options.keep_problems));
  }
  // What is used is what is written, so that a resumed comparison is the same.
  return ParseCell(CellToJson(cell));
}

std::string CellToJson(const Cell& cell) {
  return JsonOf(cell);
}

Result<Cell> ParseCell(std::string_view text) {
  Cell cell;
  PACE_RETURN_IF_ERROR(FromJson(text, cell));
  if (cell.id.arm.empty()) return DataLoss("arm: must be given");
  PACE_RETURN_IF_ERROR(CheckProblems(cell));
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
