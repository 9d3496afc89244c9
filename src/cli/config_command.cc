// pace config
#include <cstdio>

#include "cli/command.h"
#include "config/methods.h"
#include "config/presets.h"
#include "config/settings.h"

namespace pace {
namespace {

struct ConfigArguments {
  std::string settings;
  std::vector<std::string> overrides;
  bool list = false;
  bool keys = false;
  bool methods = false;
};

Status RunConfig(const ConfigArguments& arguments) {
  if (arguments.list) {
    for (const Preset& preset : Presets()) {
      std::printf("%-12s %s\n", std::string(preset.name).c_str(), std::string(preset.doc).c_str());
    }
    return Status::Ok();
  }
  if (arguments.methods) {
    std::fputs(DescribeMethods().c_str(), stdout);
    return Status::Ok();
  }
  if (arguments.keys) {
    std::fputs(DescribeSettings().c_str(), stdout);
    return Status::Ok();
  }
  if (arguments.settings.empty()) {
    return InvalidArgument(
        "config: needs a preset or a YAML file, --list, --keys or --methods (try: "
        "pace config --list)");
  }
  PACE_ASSIGN_OR_RETURN(const Settings settings,
                        LoadSettings(arguments.settings, arguments.overrides));
  std::fputs(ToYaml(settings).c_str(), stdout);
  return Status::Ok();
}

}  // namespace

void AddConfig(const CommandLine& line) {
  line.Add<ConfigArguments>(
      "config", "Show settings: resolved, or all keys, presets, methods",
      "pace config math-4b supply.threshold=4 > mine.yaml",
      [](CLI::App& app, ConfigArguments& arguments) {
        app.add_option("settings", arguments.settings, kSettingsHelp);
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_flag("--list", arguments.list, "List the presets");
        app.add_flag("--methods", arguments.methods, "List the methods of --method");
        app.add_flag("--keys", arguments.keys, "Describe every key, as Markdown");
      },
      RunConfig);
}

}  // namespace pace
