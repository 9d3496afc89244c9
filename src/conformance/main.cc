// pace-conformance: checks files of reference formats against this build.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "conformance/kinds.h"
#include "core/concat.h"

namespace pace {
namespace {

constexpr ConformanceKind kModels = {"models", "Logits, gradients and continuations of checkpoints",
                                     "Folders of a checkpoint with expected.json", CheckModels};

std::vector<ConformanceKind> AllKinds() {
  const std::span<const ConformanceKind> torch_free = TorchFreeKinds();
  std::vector<ConformanceKind> kinds(torch_free.begin(), torch_free.end());
  kinds.push_back(kModels);
  return kinds;
}

int Report(const Status& status, const Tally& tally) {
  for (const std::string& line : tally.notes) std::fprintf(stderr, "%s\n", line.c_str());
  for (const std::string& line : tally.failures) std::printf("%s\n", line.c_str());
  if (!status.ok()) std::fprintf(stderr, "pace-conformance: %s\n", status.message().c_str());
  std::printf("%s\n", Concat(tally.num_passed, " passed, ", tally.num_failed, " failed, ",
                             tally.num_skipped, " skipped")
                          .c_str());
  if (std::fflush(stdout) != 0) return 2;
  if (!status.ok()) return 2;
  return tally.num_failed > 0 ? 1 : 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Checks files of reference formats against this build of pace", "pace-conformance");
  app.require_subcommand(1);
  app.footer(
      "Prints a line per failure and last 'N passed, M failed, K skipped'.\n"
      "Exit code: 0, 1 on a failure, 2 when a file cannot be read.\n"
      "Example:\n  pace-conformance tokenizers data/tokenizers/qwen3/cases.json");
  const std::vector<ConformanceKind> kinds = AllKinds();
  KindArguments arguments;
  for (const ConformanceKind& kind : kinds) {
    CLI::App* command = app.add_subcommand(kind.name, kind.what);
    command->footer(Concat("Example:\n  pace-conformance ", kind.name, " PATH"));
    command->add_option("paths", arguments.paths, kind.paths)->required();
    const std::string name = kind.name;
    if (name == "tokenizers" || name == "chat") {
      command->add_option("--tokenizer", arguments.tokenizer,
                          "Folder of tokenizer.json (default: the file's folder)");
    }
    if (name == "chat") {
      command->add_option("--template", arguments.chat_template,
                          "A Jinja file (default: the tokenizer's own template)");
    }
    if (name == "models") {
      command->add_option("--config", arguments.config,
                          "Name of the configuration in each folder (default: config.json)");
      command
          ->add_option("--device", arguments.device,
                       "Where the decoder runs (default: cpu); cuda checks the decoder alone")
          ->check(CLI::IsMember({"cpu", "cuda"}));
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const ConformanceKind& kind : kinds) {
    if (!app.got_subcommand(kind.name)) continue;
    Tally tally;
    const Status status = kind.check(arguments, tally);
    return Report(status, tally);
  }
  return 2;
}

}  // namespace
}  // namespace pace

int main(int argc, char** argv) {
  return pace::Main(argc, argv);
}
