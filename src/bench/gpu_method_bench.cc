#include "bench/gpu_method_bench.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "bench/bench_model.h"
#include "bench/bench_report.h"
#include "bench/machine.h"
#include "bench/method_runs.h"
#include "core/printable.h"
#include "execution/policy.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/torch/training_network.h"

namespace pace {
namespace {

// The limit that this project sets itself.
constexpr double kMaxOverAsync = 1.02;
constexpr uint64_t kSeed = 11;
constexpr double kDeviation = 0.02;  // of random weights
// Of the second task, where Sync waits for the longest response of every step.
constexpr int64_t kLargeSteps = 20;
constexpr int64_t kLargeSyncSteps = 4;

const std::vector<std::string> kEverywhere = {"device=cuda", "run.evaluate_every=0",
                                              "run.checkpoint_every=0", "record.level=metrics"};

// A few dozen long responses a step, as long for one method as for the others; the
// trainer reads 16,384 tokens at once. Four batches are outstanding: all begin together,
// and the burst in which more of them end would outlast a run. Prefix scores read an
// eighth of the budget at most, as the published runs of 8,192 do.
const std::vector<std::string> kLarge = {
    "policy.compute=bf16",     "batch.num_groups=4",         "batch.group_size=8",
    "supply.threshold=4",      "generation.max_tokens=2048", "generation.mean_tokens=512",
    "prefix.min_tokens=32",    "prefix.max_tokens=256",      "engine.slots=128",
    "engine.pass_tokens=8192", "engine.kv_mib=40000",        "train.token_budget=16384",
    "train.learning_rate=1e-6"};

Result<Policy> LargePolicy() {
  // For its tokenizer: the network is another.
  PACE_ASSIGN_OR_RETURN(Policy policy, LoadPolicy({.model = "tiny"}));
  PACE_ASSIGN_OR_RETURN(ModelConfig config, NamedShape("qwen3-0.6b"));
  config.eos = {0};  // ends nothing: lengths are prescribed
  PACE_ASSIGN_OR_RETURN(const TrainingNetwork network,
                        TrainingNetwork::CreateRandom(config, kSeed, kDeviation, {}));
  policy.weights = network.Weights();
  policy.config = std::move(config);
  return policy;
}

struct Task {
  Settings settings;
  Policy policy;
  int64_t sync_steps = 0;  // TimingPlan's
};

Result<Task> MakeTask(const std::string& name, int64_t num_steps) {
  std::vector<std::string> overrides = kEverywhere;
  const bool is_tiny = name == "tiny";
  overrides.push_back(
      Concat("run.num_steps=", is_tiny ? num_steps : std::min(num_steps, kLargeSteps)));
  if (!is_tiny) overrides.insert(overrides.end(), kLarge.begin(), kLarge.end());
  PACE_ASSIGN_OR_RETURN(Settings settings, LoadSettings("tiny", overrides));
  PACE_ASSIGN_OR_RETURN(Policy policy, is_tiny ? LoadPolicy(settings.policy) : LargePolicy());
  return Task{std::move(settings), std::move(policy), is_tiny ? 0 : kLargeSyncSteps};
}

void AddMeasurements(const std::string& task, MethodTimings timings,
                     std::vector<Measurement>& all) {
  Measurement over_async = RatioOf(timings.steps["effective"], timings.steps["async"],
                                   task + "_effective_over_async", kMaxOverAsync);
  Measurement speedup =
      RatioOf(timings.steps["sync"], timings.steps["async"], task + "_sync_over_async", 0);
  speedup.limit = std::nullopt;
  for (const char* method : kTimedMethods) {
    Measurement step = timings.steps[method];
    step.name = Concat(task, "_step_", method);
    all.push_back(std::move(step));
  }
  all.push_back(std::move(over_async));
  all.push_back(std::move(speedup));
  for (const auto& [name, values] : timings.parts) {
    std::string plain = name;
    std::ranges::replace(plain, '/', '_');
    all.push_back({.name = Concat(task, "_", plain),
                   .unit = name.find("/time/") == std::string::npos ? "groups" : "s",
                   .limit = std::nullopt,
                   .repetitions = values});
  }
}

}  // namespace

Status GpuMethodBenchOptions::Validate() const {
  if (repetitions < 1) return InvalidArgument("repetitions = ", repetitions, ": must be >= 1");
  if (num_steps <= kWarmUpSteps) {
    return InvalidArgument("steps = ", num_steps, ": must be above ", kWarmUpSteps);
  }
  for (const std::string& task : tasks) {
    if (task == "tiny" || task == "qwen3-0.6b") continue;
    return InvalidArgument("shape = ", Printable(task), ": must be tiny or qwen3-0.6b");
  }
  return Status::Ok();
}

Result<std::string> RunGpuMethodBench(const GpuMethodBenchOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice());
  std::vector<Measurement> all;
  std::map<std::string, Task> tasks;
  std::string command =
      Concat("pace bench methods --device cuda --repetitions ", options.repetitions, " --shape");
  for (const std::string& name : options.tasks) {
    PACE_ASSIGN_OR_RETURN(Task task, MakeTask(name, options.num_steps));
    PACE_ASSIGN_OR_RETURN(
        MethodTimings timings,
        TimeMethods(task.settings, task.policy,
                    {.repetitions = options.repetitions, .sync_steps = task.sync_steps},
                    [&](const std::string& run) {
                      if (options.listener) options.listener(Concat(name, ", ", run));
                    }));
    AddMeasurements(name, std::move(timings), all);
    tasks.emplace(name, std::move(task));
    command += " " + name;
  }
  return BenchReport(
      "methods", all,
      [&](JsonWriter& json) {
        json.BeginObject();
        json.Put("device", "cuda");
        json.Put("warm_up_steps", kWarmUpSteps);
        json.Put("sync_warm_up_steps", kSyncWarmUpSteps);
        json.Put("runs_of_each", options.repetitions);
        for (const auto& [name, task] : tasks) {
          json.Put(name + "_steps", task.settings.run.num_steps);
          if (task.sync_steps > 0) json.Put(name + "_sync_steps", task.sync_steps);
        }
        json.EndObject();
      },
      [&](JsonWriter& json) {
        json.Put("command", command);
        WriteGpu(device, {}, json);
        for (const Measurement& measured : all) {
          if (!measured.name.ends_with("_effective_over_async")) continue;
          const auto [low, high] = MedianIntervalOf(measured.repetitions);
          json.Key(measured.name + "_95");
          json.BeginArray();
          json.Value(low);
          json.Value(high);
          json.EndArray();
        }
      });
}

}  // namespace pace
