#include "bench/sandbox_bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bench_report.h"
#include "bench/measurement.h"
#include "core/clock.h"
#include "core/file_descriptor.h"
#include "core/mutex.h"
#include "sandbox/python_installation.h"
#include "sandbox/sandbox.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace pace {
namespace {

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

// Starts the interpreter, reads all it prints, waits for its end.
Result<std::string> RunBare(const std::string& python, const char* code) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), 1);
  std::string words[] = {python, "-c", code};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = -1;
  const int error = ::posix_spawn(&child, python.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(python, error);
  writing.Close();
  std::string out;
  char buffer[4096];
  while (true) {
    const ssize_t count = ::read(reading.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    out.append(buffer, static_cast<size_t>(count));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return out;
}

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
Status MeasureSide(Side& side, const char* expected, const SandboxBenchOptions& options,
                   bool count) {
  Mutex mutex;
  std::vector<double> latencies;
  Status failure;
  const WallClock clock;
  const Seconds until{options.seconds_per_measurement};
  std::vector<std::thread> callers;
  for (int64_t caller = 0; caller < options.num_callers; ++caller) {
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
  side.rate.repetitions.push_back(static_cast<double>(latencies.size()) / clock.Now().count());
  side.p99.repetitions.push_back(P99(latencies));
  return Status::Ok();
}

Side MakeSide(const std::string& name, std::function<Result<std::string>()> run) {
  return {.rate = {.name = name + "_programs", .unit = "1/s", .limit = std::nullopt},
          .p99 = {.name = name + "_p99_latency", .unit = "ms", .limit = std::nullopt},
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
    const auto bare = [python, &workload] { return RunBare(python, workload.code); };
    rows.push_back({.workload = &workload,
                    .ours = MakeSide(workload.name, isolated),
                    .bare = MakeSide(Concat("bare_", workload.name), bare)});
  }
  return rows;
}

std::vector<Measurement> Measurements(const std::vector<Row>& rows) {
  std::vector<Measurement> all;
  for (const Row& row : rows) {
    all.insert(all.end(), {row.ours.rate, row.ours.p99, row.bare.rate, row.bare.p99});
    all.push_back(RatioOf(row.ours.rate, row.bare.rate,
                          Concat(row.workload->name, "_times_bare_python"),
                          row.workload->required_factor));
    all.back().limit_kind = Limit::kAtLeast;
  }
  return all;
}

}  // namespace

Result<std::string> RunSandboxBench(const SandboxBenchOptions& options) {
  if (options.repetitions < 1 || options.num_callers < 1 ||
      !(options.seconds_per_measurement > 0)) {
    return InvalidArgument("repetitions, callers and seconds must be positive");
  }
  // The interpreter itself: what PATH finds may be a script that looks for it.
  PACE_ASSIGN_OR_RETURN(const PythonInstallation python, FindPython(options.python));
  SandboxOptions sandbox_options;
  sandbox_options.python = python.executable;
  sandbox_options.max_programs = options.num_callers;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(sandbox_options));
  const std::vector<std::string>& modules = sandbox->warm_modules();
  const bool with_sympy = std::find(modules.begin(), modules.end(), "sympy") != modules.end();
  std::vector<Row> rows = MakeRows(*sandbox, python.executable, with_sympy);
  for (int64_t round = -1; round < options.repetitions; ++round) {
    for (Row& row : rows) {
      for (Side* side : {&row.ours, &row.bare}) {
        PACE_RETURN_IF_ERROR(MeasureSide(*side, row.workload->output, options, round >= 0));
      }
    }
  }
  return BenchReport(
      "sandbox", Measurements(rows),
      [&](JsonWriter& json) {
        json.BeginObject();
        json.Put("repetitions", options.repetitions);
        json.Put("seconds_per_measurement", options.seconds_per_measurement);
        json.Put("callers", options.num_callers);
        json.Put("python", options.python);
        json.Put("isolation", sandbox->Description());
        json.EndObject();
      },
      [&](JsonWriter& json) {
        if (!with_sympy) json.Put("skipped", "sympy: this Python has no such module");
      });
}

}  // namespace pace
