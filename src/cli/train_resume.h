// What `pace train --resume DIR key=value ...` goes on with.
//
// A run keeps its settings, but for a few that say how long it is, what it saves and what
// it writes down. The checkpoint holds the settings it was made with, so that a changed
// config.yaml is noticed as well as an override.
#ifndef PACE_CLI_TRAIN_RESUME_H_
#define PACE_CLI_TRAIN_RESUME_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/status.h"
#include "execution/checkpoint.h"

namespace pace {

struct ResumePlan {
  Settings settings = {};
  std::string driver = {};
  RecordLevel level = RecordLevel::kMetrics;
  bool settings_changed = false;  // config.yaml does not say them yet
  // Where it goes on; none: no checkpoint was taken, and the run begins again.
  std::optional<LoadedCheckpoint> checkpoint = {};
  std::vector<std::string> notes = {};  // for whoever resumes it, a line each
};

// Whether a resumed run may have another value of this key.
bool MayChangeOnResume(std::string_view key);

// The first setting that differs and may not is an error that names it. `place` says where
// the settings before come from.
Status CheckResumedSettings(Settings before, Settings now, const std::string& place);

// Changes nothing but what an interrupted save left. REQUIRES: the caller holds the run's
// lock
Result<ResumePlan> PlanResume(const std::string& directory,
                              const std::vector<std::string>& overrides);

}  // namespace pace

#endif  // PACE_CLI_TRAIN_RESUME_H_
