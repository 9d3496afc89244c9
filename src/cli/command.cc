#include "cli/command.h"

#include <cstdio>

#include "config/methods.h"
#include "core/concat.h"
#include "inference/inference_options.h"

namespace pace {

std::string MethodNames() {
  std::string out;
  for (const Method& method : Methods()) {
    out += Concat(out.empty() ? "" : ", ", method.alias.empty() ? method.name : method.alias);
  }
  return out + " (pace config --methods)";
}

int ExitCode(const Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "pace: %s\n", status.message().c_str());
  return 2;
}

int ExitCode(const Result<int>& code) {
  return code.ok() ? *code : ExitCode(code.status());
}

void AddInferenceFlags(CLI::App& app, InferenceArguments& arguments) {
  app.add_option("--model", arguments.model, "Folder that holds config.json and the weights")
      ->required();
  app.add_option("--dtype", arguments.dtype, "What to compute with: f32 or bf16")
      ->capture_default_str();
  app.add_option("--device", arguments.device, "cpu, or cuda in a build with it")
      ->capture_default_str();
  app.add_option("--threads", arguments.num_threads, "Threads; 0 = one per core")
      ->check(CLI::Range(0, 4096));
  app.add_option("--kv-memory", arguments.kv_memory,
                 "Memory for keys and values, such as 512MiB (default: 1GiB, or less where that "
                 "is enough)");
}

CommandLine CommandLine::AddGroup(const char* name, const char* what, const char* example) const {
  CLI::App& group = AddNamed(name, what, example);
  group.require_subcommand(1);
  return {group, chosen_};
}

CLI::App& CommandLine::AddNamed(const char* name, const char* what, const char* example) const {
  CLI::App* command = app_.add_subcommand(name, what);
  command->footer(std::string("Example:\n  ") + example);
  return *command;
}

}  // namespace pace
