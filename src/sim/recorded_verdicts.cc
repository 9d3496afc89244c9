#include "sim/recorded_verdicts.h"

#include <limits>
#include <utility>

#include "core/json_scanner.h"
#include "record/run_files.h"

namespace pace {

Result<RecordedVerdicts> RecordedVerdicts::Open(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, OpenRecord(path));
  return RecordedVerdicts(std::move(lines));
}

std::optional<RecordedVerdicts::Verdict> RecordedVerdicts::Parse(std::string_view line) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  Verdict out;
  bool has_verdict = false;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "group") {
      scan.Integer(0, std::numeric_limits<int64_t>::max(), "", out.group);
    } else if (scan.key() == "verdict") {
      has_verdict = scan.Text(out.verdict);
    } else if (scan.key() == "reason") {
      scan.Text(out.reason);
    } else if (scan.key() == "score") {
      if (!scan.TakeNull()) scan.Real(-kLargest, kLargest, "", out.score.emplace());
    } else {
      scan.Skip();
    }
  }
  scan.End();
  if (!scan.ok() || !has_verdict) return std::nullopt;
  return out;
}

std::string RecordedVerdicts::Text(const Verdict& verdict) {
  const std::string score = verdict.score.has_value() ? Concat(", score ", *verdict.score) : "";
  return Concat("group ", verdict.group, " ", verdict.verdict, " (", verdict.reason, score, ")");
}

std::optional<RecordedVerdicts::Verdict> RecordedVerdicts::Next() {
  while (true) {
    const Result<bool> more = lines_.Next();
    if (!more.ok() || !*more) return std::nullopt;
    if (std::optional<Verdict> verdict = Parse(lines_.line())) return verdict;
  }
}

void RecordedVerdicts::See(std::string_view line) {
  const std::optional<Verdict> replayed = Parse(line);
  if (!replayed.has_value()) return;
  std::optional<Verdict> recorded = Next();
  // The record before a snapshot is passed over.
  while (num_seen_ == 0 && recorded.has_value() && recorded->group != replayed->group) {
    recorded = Next();
  }
  ++num_seen_;
  if (recorded == replayed) return;
  if (++num_different_ > 1) return;
  first_difference_ =
      Concat("recorded ", recorded ? Text(*recorded) : "nothing", ", replayed ", Text(*replayed));
}

std::string RecordedVerdicts::Finish() {
  if (num_different_ > 0) {
    return Concat(num_different_, " of ", num_seen_,
                  " verdicts are not as recorded; the first: ", first_difference_);
  }
  int64_t num_left = 0;
  while (Next().has_value()) ++num_left;
  if (num_left > 0) {
    return Concat(num_seen_, " verdicts, all as recorded; the record holds ", num_left, " more");
  }
  return Concat(num_seen_, " verdicts, all as recorded");
}

}  // namespace pace
