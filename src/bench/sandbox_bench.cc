// `pace bench sandbox`: how fast isolated programs run, beside starting a bare python3 for
// each, with as many callers, in the same rounds. Where sympy is missing its measurements
// are left out, and `skipped` says so.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/benches.h"
#include "bench/peer.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "sandbox/python_installation.h"
#include "sandbox/sandbox.h"

namespace pace {
namespace {

constexpr const char* kPython = "python3";
constexpr int64_t kNumCallers = 16;
constexpr double kSecondsPerMeasurement = 2;
// More than any program takes.
constexpr Seconds kProgramTimeout(600);
// At least as fast as an interpreter without isolation; imports are where warm
// interpreters pay.
constexpr double kPrintFactor = 1;
constexpr double kSympyFactor = 5;

struct Workload {
  const char* name;
  const char* code;
  const char* output;
  double required_factor;
};
constexpr Workload kWorkloads[] = {
    {"print", "print(42)", "42\n", kPrintFactor},
    {"sympy", "import sympy\nx = sympy.symbols('x')\nprint(sympy.factor(x**2 - 1))",
     "(x - 1)*(x + 1)\n", kSympyFactor},
};

// One side of one workload.
struct Side {
  Measurement rate;
  Measurement p99;
  std::function<Result<std::string>()> run;
};

struct Row {
  const Workload* workload;
  Side ours;
  Side bare;
};

double P99(std::vector<double>& latencies) {
  std::sort(latencies.begin(), latencies.end());
  const size_t at = std::min(latencies.size() - 1, latencies.size() * 99 / 100);
  return latencies[at];
}

// Many callers, each with the next program as soon as its last one ended.
Status MeasureSide(Side& side, const char* expected, bool count) {
  Mutex mutex;
  std::vector<double> latencies;
  Status failure;
  const WallClock clock;
  const Seconds until(kSecondsPerMeasurement);
  std::vector<std::thread> callers;
  for (int64_t caller = 0; caller < kNumCallers; ++caller) {
    callers.emplace_back([&] {
      while (clock.Now() < until) {
        const Seconds begun = clock.Now();
        const Result<std::string> out = side.run();
        const double ms = 1e3 * (clock.Now() - begun).count();
        MutexLock lock(mutex);
        latencies.push_back(ms);
        if (!out.ok()) failure = out.status();
        if (out.ok() && *out != expected) failure = DataLoss("a program printed '", *out, "'");
        if (!failure.ok()) return;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  PACE_RETURN_IF_ERROR(failure);
  if (!count) return Status::Ok();
  side.rate.Add(static_cast<double>(latencies.size()) / clock.Now().count());
  side.p99.Add(P99(latencies));
  return Status::Ok();
}

Side MakeSide(const std::string& name, std::function<Result<std::string>()> run) {
  return {.rate = {.name = name + "_programs", .unit = "1/s"},
          .p99 = {.name = name + "_p99_latency", .unit = "ms"},
          .run = std::move(run)};
}

std::vector<Row> MakeRows(Sandbox& sandbox, const std::string& python, bool with_sympy) {
  std::vector<Row> rows;
  for (const Workload& workload : kWorkloads) {
    if (!with_sympy && std::string_view(workload.name) == "sympy") continue;
    const auto isolated = [&sandbox, &workload]() -> Result<std::string> {
      PACE_ASSIGN_OR_RETURN(ProgramResult result, sandbox.Run({.code = workload.code}, {}));
      return std::move(result.out);
    };
    const auto bare = [python, &workload] {
      return RunProgram({python, "-c", workload.code}, "/dev/null", kProgramTimeout);
    };
    rows.push_back({.workload = &workload,
                    .ours = MakeSide(workload.name, isolated),
                    .bare = MakeSide(Concat("bare_", workload.name), bare)});
  }
  return rows;
}

}  // namespace

Status RunSandboxBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  // The interpreter itself: what PATH finds may be a script that looks for it.
  PACE_ASSIGN_OR_RETURN(const PythonInstallation python, FindPython(kPython));
  SandboxOptions sandbox_options;
  sandbox_options.python = python.executable;
  sandbox_options.max_programs = kNumCallers;
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<Sandbox> sandbox, Sandbox::Start(sandbox_options));
  const std::vector<std::string>& modules = sandbox->warm_modules();
  const bool with_sympy = std::ranges::find(modules, "sympy") != modules.end();
  std::vector<Row> rows = MakeRows(*sandbox, python.executable, with_sympy);
  // The first round warms up and is not counted.
  for (int64_t round = 0; round <= options.repetitions; ++round) {
    for (Row& row : rows) {
      for (Side* side : {&row.ours, &row.bare}) {
        PACE_RETURN_IF_ERROR(MeasureSide(*side, row.workload->output, round > 0));
      }
    }
  }
  for (const Row& row : rows) {
    for (const Side* side : {&row.ours, &row.bare}) {
      report.measurements.push_back(side->rate);
      report.measurements.push_back(side->p99);
    }
    report.measurements.push_back(RatioOf(row.ours.rate, row.bare.rate,
                                          Concat(row.workload->name, "_times_bare_python"),
                                          row.workload->required_factor, Limit::kAtLeast));
  }
  JsonWriter& settings = report.settings();
  settings.Put("repetitions", options.repetitions);
  settings.Put("seconds_per_measurement", kSecondsPerMeasurement);
  settings.Put("callers", kNumCallers);
  settings.Put("python", kPython);
  settings.Put("isolation", sandbox->Description());
  if (!with_sympy) report.more().Put("skipped", "sympy: this Python has no such module");
  return Status::Ok();
}

}  // namespace pace
