// IgnoredSettings: keys that a person set and that a driver does not read.
//
// Presets set keys for every driver; only what stands on the command line or in
// the person's own file counts.
//
// Thread-safety: functions of their arguments and the file.
#ifndef PACE_CONFIG_IGNORED_SETTINGS_H_
#define PACE_CONFIG_IGNORED_SETTINGS_H_

#include <string>
#include <string_view>
#include <vector>

namespace pace {

// `driver`: lab or runtime. `preset_or_path` and `overrides` as LoadSettings takes
// them; what does not load names no keys. In the order they were set, each once.
std::vector<std::string> IgnoredSettings(std::string_view driver, const std::string& preset_or_path,
                                         const std::vector<std::string>& overrides);

// One line about them; empty without any.
std::string IgnoredSettingsLine(std::string_view driver, const std::vector<std::string>& keys);

}  // namespace pace

#endif  // PACE_CONFIG_IGNORED_SETTINGS_H_
