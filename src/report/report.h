// WriteReport puts runs side by side on one page of HTML.
//
//   Status status = WriteReport({run_a, run_b}, "report.html");
//
// The page is one file without network, fonts or libraries: SVG written here,
// a small style sheet that follows light and dark, and a script without which
// it reads just as well. All text of runs is escaped. Its size does not grow with the length of the
// runs.
//
// Thread-safety: pure functions of their arguments.
#ifndef PACE_REPORT_REPORT_H_
#define PACE_REPORT_REPORT_H_

#include <map>
#include <string>
#include <vector>

#include "core/status.h"
#include "record/run_reader.h"

namespace pace {

// A page with more runs cannot be read.
inline constexpr size_t kMaxReportRuns = 16;

struct ReportOptions {
  // Seconds per step measured elsewhere, by method ("async", "effective");
  // drawn beside ours. compare.reference in a run's settings comes first.
  std::map<std::string, double> reference_step_seconds;
};

// The page. REQUIRES: 1 to kMaxReportRuns runs.
std::string RenderReport(const std::vector<RunData>& runs, const ReportOptions& options);

// Renders and writes the page, replacing the file.
Status WriteReport(const std::vector<RunData>& runs, const std::string& path,
                   const ReportOptions& options = {});

}  // namespace pace

#endif  // PACE_REPORT_REPORT_H_
