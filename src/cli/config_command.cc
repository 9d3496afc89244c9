// pace config
#include <cstdio>

#include "cli/commands.h"
#include "config/methods.h"
#include "config/presets.h"
#include "config/settings.h"

namespace pace {

int RunConfigCommand(const ConfigArguments& arguments) {
  if (arguments.list) {
    for (const Preset& preset : Presets()) {
      std::printf("%-12s %s\n", std::string(preset.name).c_str(), std::string(preset.doc).c_str());
    }
    return 0;
  }
  if (arguments.methods) {
    std::fputs(DescribeMethods().c_str(), stdout);
    return 0;
  }
  if (arguments.keys) {
    std::fputs(DescribeSettings().c_str(), stdout);
    return 0;
  }
  if (arguments.settings.empty()) {
    return Fail(
        InvalidArgument("config: needs a preset or a YAML file, --list, --keys or --methods (try: "
                        "pace config --list)"));
  }
  const Result<Settings> settings = LoadSettings(arguments.settings, arguments.overrides);
  if (!settings.ok()) return Fail(settings.status());
  std::fputs(ToYaml(*settings).c_str(), stdout);
  return 0;
}

}  // namespace pace
