// `pace` and `pace-learn`: reads the command line and runs one command.
#include <cstdio>
#include <exception>
#include <new>

#include "cli/command.h"
#include "record/build_info.h"

namespace pace {
namespace {

int Main(int argc, char** argv) {
  if (const Status status = HandOver(argv); !status.ok()) return ExitCode(status);
  CLI::App app("pace: asynchronous reinforcement learning with controlled staleness", "pace");
  app.require_subcommand(1);
  app.set_version_flag("--version", Concat(PaceVersion(), " (", PaceCommit(), ")"));
  app.footer("Every command has --help with an example.");
  std::function<int()> chosen;
  for (const auto add :
       {AddSim,    AddAdvise,  AddLaunch,   AddReplay, AddReport, AddConfig,   AddBench,
        AddDoctor, AddSandbox, AddTokenize, AddVerify, AddTrain,  AddCompare,  AddEval,
        AddData,   AddSft,     AddImport,   AddExport, AddScore,  AddGenerate, AddServe}) {
    add({app, chosen});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return chosen();
}

}  // namespace
}  // namespace pace

// Errors are values; an exception comes from a library, and ends in one line.
int main(int argc, char** argv) {
  try {
    return pace::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("pace: out of memory (a smaller model, batch or input may fit)\n", stderr);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    std::fprintf(stderr, "pace: %s\n", what.substr(0, what.find('\n')).c_str());
  }
  return 2;
}
