// RecordedVerdicts: compares a replay with the verdicts that its run recorded.
//
//   Result<RecordedVerdicts> recorded = RecordedVerdicts::Open("runs/x/decisions.jsonl");
//   recorded->See(line);  // each line of the replay (sim/replay.h)
//   recorded->Finish();   // "6100 verdicts, all as recorded"
//
// Group, verdict, reason and admission score must agree. A replay may begin later than the
// record, from a snapshot.
// Thread-safety: none.
#ifndef PACE_SIM_RECORDED_VERDICTS_H_
#define PACE_SIM_RECORDED_VERDICTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/line_reader.h"
#include "core/status.h"

namespace pace {

class RecordedVerdicts {
 public:
  static Result<RecordedVerdicts> Open(const std::string& path);

  // Skips lines that are not verdicts.
  void See(std::string_view line);

  // One line: how many verdicts agree, or the first that does not.
  std::string Finish();

 private:
  struct Verdict {
    int64_t group = 0;
    std::string verdict = {};
    std::string reason = {};
    std::optional<double> score = {};
    bool operator==(const Verdict&) const = default;
  };

  explicit RecordedVerdicts(LineReader lines) : lines_(std::move(lines)) {}
  // None where the line holds none.
  static std::optional<Verdict> Parse(std::string_view line);
  static std::string Text(const Verdict& verdict);
  // None at the end of the record, or where it cannot be read further.
  std::optional<Verdict> Next();

  LineReader lines_;
  int64_t num_seen_ = 0;
  int64_t num_different_ = 0;
  std::string first_difference_;
};

}  // namespace pace

#endif  // PACE_SIM_RECORDED_VERDICTS_H_
