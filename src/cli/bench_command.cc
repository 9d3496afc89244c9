// pace bench
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "bench/checkpoint_bench.h"
#include "bench/controller_bench.h"
#include "bench/decode_bench.h"
#include "bench/gpu_method_bench.h"
#include "bench/gpu_train_bench.h"
#include "bench/method_bench.h"
#include "bench/rollout_bench.h"
#include "bench/sandbox_bench.h"
#include "bench/tokenizer_bench.h"
#include "bench/train_bench.h"
#include "cli/bench_table.h"
#include "cli/commands.h"

namespace pace {
namespace {

Result<std::string> RunDecode(const BenchArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const DeviceKind device, ParseDevice(arguments.device));
  DecodeBenchOptions options;
  options.device = device;
  options.repetitions = arguments.repetitions;
  options.python = !arguments.no_python;
  options.num_threads = arguments.num_threads;
  options.context = arguments.context;
  options.batches = arguments.batches;
  if (device == DeviceKind::kCpu) options.shapes = {"tiny"};
  if (!arguments.shapes.empty()) options.shapes = arguments.shapes;
  return RunDecodeBench(options);
}

Result<std::string> Run(const BenchArguments& arguments) {
  const bool python = !arguments.no_python;
  if (arguments.what == "decode") return RunDecode(arguments);
  if (arguments.what == "methods" && arguments.device == "cuda") {
    GpuMethodBenchOptions options{.repetitions = arguments.repetitions};
    options.listener = [](const std::string& run) {
      std::fprintf(stderr, "methods: %s\n", run.c_str());
    };
    if (!arguments.shapes.empty()) options.tasks = arguments.shapes;
    return RunGpuMethodBench(options);
  }
  if (arguments.what == "methods") {
    return RunMethodBench({.repetitions = std::max<int64_t>(arguments.repetitions, 10)});
  }
  if (arguments.what == "rollout") {
    return RunRolloutBench({.model = arguments.model,
                            .repetitions = arguments.repetitions,
                            .python = python,
                            .num_threads = arguments.num_threads});
  }
  if (arguments.what == "train" && arguments.device == "cuda") {
    GpuTrainBenchOptions options{.repetitions = arguments.repetitions, .python = python};
    if (!arguments.shapes.empty()) options.shapes = arguments.shapes;
    return RunGpuTrainBench(options);
  }
  if (arguments.what == "train") {
    return RunTrainBench({.model = arguments.model,
                          .repetitions = arguments.repetitions,
                          .python = python,
                          .num_threads = arguments.num_threads});
  }
  if (arguments.what == "checkpoint") {
    return RunCheckpointBench({.repetitions = arguments.repetitions,
                               .num_responses = arguments.num_responses,
                               .num_tokens = arguments.num_tokens});
  }
  if (arguments.what == "sandbox") {
    return RunSandboxBench({.repetitions = arguments.repetitions});
  }
  if (arguments.what == "tokenizer") {
    if (arguments.tokenizer.empty() || arguments.texts.empty()) {
      return InvalidArgument("bench tokenizer: --tokenizer DIR and --texts PATH must be given");
    }
    return RunTokenizerBench({.tokenizer = arguments.tokenizer,
                              .texts = arguments.texts,
                              .repetitions = arguments.repetitions,
                              .python = python});
  }
  return RunControllerBench({.repetitions = arguments.repetitions, .python = python});
}

}  // namespace

int RunBenchCommand(const BenchArguments& arguments) {
  const Result<std::string> json = Run(arguments);
  if (!json.ok()) return Fail(json.status());
  if (arguments.json || isatty(STDOUT_FILENO) == 0) {
    std::printf("%s\n", json->c_str());
    return 0;
  }
  const Result<std::string> table = BenchTable(*json);
  if (!table.ok()) return Fail(table.status());
  std::printf("%s", table->c_str());
  return 0;
}

}  // namespace pace
