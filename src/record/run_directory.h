// Where a run goes by default, whether a folder can hold one, and what its manifest says.
//
// Thread-safety: functions of their arguments and the files.
#ifndef PACE_RECORD_RUN_DIRECTORY_H_
#define PACE_RECORD_RUN_DIRECTORY_H_

#include <string>

#include "config/settings.h"
#include "core/status.h"
#include "record/run_writer.h"

namespace pace {

// runs/NAME, or the first of runs/NAME-2, runs/NAME-3, ... that is free.
std::string FreeRunDirectory(const std::string& settings);

// Whether `folder` is a directory that may be written to, or can be made, with those
// above it. Makes nothing.
Status CheckCanHold(const std::string& folder);

// The same for a new run; a folder that holds one already is an error.
Status CheckNewRunDirectory(const std::string& folder);

// What the settings say of a training run under `driver`, lab or runtime: where it runs and
// what running it again gives. Versions and times are the caller's to add.
Manifest ManifestOf(const Settings& settings, const std::string& name, const std::string& driver);

}  // namespace pace

#endif  // PACE_RECORD_RUN_DIRECTORY_H_
