// The command line as CLI11 reads it; main.cc puts the commands together.
#ifndef PACE_CLI_COMMAND_LINE_H_
#define PACE_CLI_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <string>

#include "cli/commands.h"

namespace pace {

// A command with its example.
inline CLI::App* AddCommand(CLI::App& app, const char* name, const char* what,
                            const char* example) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer(std::string("Example:\n  ") + example);
  return command;
}

// Commands about one model (model_commands.h).
void AddImport(CLI::App& app, ImportArguments& arguments);
void AddExport(CLI::App& app, ExportArguments& arguments);
void AddScore(CLI::App& app, ScoreArguments& arguments);
void AddGenerate(CLI::App& app, GenerateArguments& arguments);

}  // namespace pace

#endif  // PACE_CLI_COMMAND_LINE_H_
