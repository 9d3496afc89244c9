// What `pace train --resume DIR key=value ...` continues with.
//
// A run keeps its settings, except for a few: its length, its checkpoints, its records. The
// checkpoint holds the settings that it was made with, so that a changed config.yaml is
// noticed as well as an override.
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
  bool settings_changed = false;  // config.yaml is to be rewritten
  // Where the run continues; none: it has no checkpoint and starts again.
  std::optional<LoadedCheckpoint> checkpoint = {};
  std::vector<std::string> notes = {};  // for whoever resumes it, a line each
};

// Whether a resumed run may have another value of this key.
bool MayChangeOnResume(std::string_view key);

// An error names the first setting that differs and may not. `place` is the source of the
// earlier settings.
Status CheckResumedSettings(Settings before, Settings now, const std::string& place);

// Removes what an interrupted save left, and changes nothing else. REQUIRES: the caller
// holds the run's lock
Result<ResumePlan> PlanResume(const std::string& directory,
                              const std::vector<std::string>& overrides);

}  // namespace pace

#endif  // PACE_CLI_TRAIN_RESUME_H_
