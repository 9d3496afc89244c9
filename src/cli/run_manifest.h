// What manifest.json says of a training run's settings: where it runs and what
// running it again gives.
#ifndef PACE_CLI_RUN_MANIFEST_H_
#define PACE_CLI_RUN_MANIFEST_H_

#include <string>

#include "config/settings.h"
#include "record/run_writer.h"

namespace pace {

// For `driver` lab or runtime. Versions and times are the caller's to add.
Manifest ManifestOf(const Settings& settings, const std::string& name, const std::string& driver);

}  // namespace pace

#endif  // PACE_CLI_RUN_MANIFEST_H_
