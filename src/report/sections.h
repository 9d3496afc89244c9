// The sections of a report, each a piece of HTML from all runs. A section that
// has nothing to show is empty.
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_SECTIONS_H_
#define PACE_REPORT_SECTIONS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/run_reader.h"
#include "report/page.h"
#include "report/summary.h"

namespace pace {

// What every section reads.
struct ReportView {
  const std::vector<RunData>& runs;
  const std::vector<RunSummary>& summaries;  // one per run, same order
  // Step times measured elsewhere, by method; a run's settings come first.
  const std::map<std::string, double>& reference_step_seconds;
};

// Reward and accuracy over steps and time, and how training goes; empty when no
// run learns.
std::string LearningSection(const ReportView& view);
// Occupancy, staleness in its parts, budget and cutoff over steps.
std::string PoolSection(const ReportView& view);
// Retained and rejected groups of each filtering run.
std::string VerdictSection(const ReportView& view);
// Groups that entered training, one run against another.
std::string TrainedSection(const ReportView& view);
// Where the time of a step goes, and who waits for whom.
std::string TimeSection(const ReportView& view);
// The timelines of TimeSection; empty where no run recorded its time.
std::string TimelineFigures(const ReportView& view);
// Responses as text, with what was decided about them.
std::string ResponsesSection(const ReportView& view);
// What filtering costs and how it shifts what is trained on.
std::string SelectionSection(const ReportView& view);
// Where the runs come from and how their settings differ.
std::string SettingsSection(const ReportView& view);

// The pairs that TrainedSection shows, the default one first, at most `most`.
std::vector<std::pair<size_t, size_t>> TrainedPairs(const std::vector<RunSummary>& summaries,
                                                    size_t most);

}  // namespace pace

#endif  // PACE_REPORT_SECTIONS_H_
