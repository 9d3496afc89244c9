// pace bench
#include <cstdio>

#include "bench/controller_bench.h"
#include "cli/commands.h"

namespace pace {

int RunBenchCommand(const BenchArguments& arguments) {
  BenchOptions options;
  options.repetitions = arguments.repetitions;
  options.python = !arguments.no_python;
  const Result<std::string> json = RunControllerBench(options);
  if (!json.ok()) return Fail(json.status());
  std::printf("%s\n", json->c_str());
  return 0;
}

}  // namespace pace
