// A sweep as one page of HTML: time per trained prompt against waiting staleness
// and against tokens never trained on, the front marked, and all settings in a table.
//
// Thread-safety: pure functions of their arguments.
#ifndef PACE_REPORT_SWEEP_PAGE_H_
#define PACE_REPORT_SWEEP_PAGE_H_

#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

struct SweepPoint {
  std::string setting;  // "admission.target_occupancy=8"
  double step_seconds = 0;
  double seconds = 0;  // per trained prompt
  double waiting = 0;  // waiting staleness
  double generation = 0;
  double rejected = 0;  // share of offered groups
  double wasted = 0;    // share of tokens never trained on
  bool on_front = false;
  bool is_best = false;
};

struct SweepPage {
  std::string title;
  std::string advice;  // one sentence
  std::vector<SweepPoint> points;
};

// REQUIRES: at least one point.
std::string RenderSweepPage(const SweepPage& page);

}  // namespace pace

#endif  // PACE_REPORT_SWEEP_PAGE_H_
