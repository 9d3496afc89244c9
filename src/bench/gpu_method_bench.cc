// `pace bench methods --device cuda`: what a method costs in time where rollouts and
// training share one GPU.
//
// Three tasks: the default one, and two for a network of Qwen3-0.6B's shape.
// `qwen3-0.6b`: prescribed response lengths (generation.mean_tokens) with an exponential tail up to
// 2,048 tokens, the same for every method; rollouts limit the speed. `backlog`: 16 responses of 16
// tokens each after a prompt of about a thousand, which a group shares in generation but not in
// training, so that training limits the speed; groups wait four steps or five, and PACE rejects
// some of the latter. Every step trains the same number of tokens there. End-to-end runs, methods
// interleaved: PACE's step over Async's, how much faster Async is than Sync, and how much of PACE's
// rescoring the trainer waits for.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "bench/bench_model.h"
#include "bench/benches.h"
#include "bench/machine.h"
#include "bench/method_runs.h"
#include "core/printable.h"
#include "execution/policy.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/torch/training_network.h"

namespace pace {
namespace {

// The limit that this project sets itself.
constexpr double kMaxOverGpuAsync = 1.02;
constexpr int64_t kGpuSteps = 25;  // of a run
constexpr uint64_t kMethodSeed = 11;
constexpr double kMethodDeviation = 0.02;  // of random weights
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

constexpr const char* kBacklogName = "backlog";
// The windows of scores fill before the steps that are timed.
constexpr int64_t kBacklogSteps = 30;
constexpr int64_t kBacklogWarmUp = 12;
constexpr int64_t kPromptCharacters = 1000;  // each is a token

std::vector<std::string> Backlog() {
  std::string text;
  while (std::ssize(text) < kPromptCharacters) text += "1+2=3,";
  return {"policy.compute=bf16",      "batch.num_groups=4",
          "batch.group_size=16",      "supply.threshold=4.5",
          "generation.max_tokens=16", "prefix.min_tokens=4",
          "prefix.max_tokens=16",     "engine.slots=256",
          "engine.pass_tokens=8192",  "engine.kv_mib=40000",
          "train.token_budget=16384", "train.learning_rate=1e-6",
          "prompt.max_tokens=2048",   Concat("task.prompt_template=", text, "{problem}")};
}

Result<Policy> LargePolicy() {
  // For its tokenizer only.
  PACE_ASSIGN_OR_RETURN(Policy policy, LoadPolicy({.model = "tiny"}));
  PACE_ASSIGN_OR_RETURN(ModelConfig config, NamedShape("qwen3-0.6b"));
  config.eos = {0};  // ends nothing: lengths are prescribed
  PACE_ASSIGN_OR_RETURN(const TrainingNetwork network,
                        TrainingNetwork::CreateRandom(config, kMethodSeed, kMethodDeviation, {}));
  policy.weights = network.Weights();
  policy.config = std::move(config);
  return policy;
}

struct Task {
  Settings settings;
  Policy policy;
  TimingPlan plan;
};

Result<Task> MakeTask(const std::string& name, const BenchOptions& options) {
  std::vector<std::string> own = kEverywhere;
  const bool is_tiny = name == "tiny";
  const bool is_backlog = name == kBacklogName;
  own.push_back(Concat("run.num_steps=", is_tiny      ? kGpuSteps
                                         : is_backlog ? kBacklogSteps
                                                      : kLargeSteps));
  const std::vector<std::string> more = is_tiny      ? std::vector<std::string>{}
                                        : is_backlog ? Backlog()
                                                     : kLarge;
  own.insert(own.end(), more.begin(), more.end());
  const int64_t warm_up_steps = is_backlog ? kBacklogWarmUp : kWarmUpSteps;
  PACE_ASSIGN_OR_RETURN(Settings settings, TaskSettings(own, options.overrides, warm_up_steps));
  PACE_ASSIGN_OR_RETURN(Policy policy, is_tiny ? LoadPolicy(settings.policy) : LargePolicy());
  return Task{std::move(settings),
              std::move(policy),
              {.repetitions = options.repetitions,
               .sync_steps = is_tiny ? 0 : kLargeSyncSteps,
               .warm_up_steps = warm_up_steps}};
}

void AddMethodMeasurements(const std::string& task, MethodTimings timings,
                           std::vector<Measurement>& all) {
  const std::vector<Measurement> over_async = OverAsync(timings, task + "_", kMaxOverGpuAsync);
  Measurement speedup =
      RatioOf(timings.steps["sync"], timings.steps["async"], task + "_sync_over_async");
  for (const char* method : kTimedMethods) {
    Measurement step = timings.steps[method];
    step.name = Concat(task, "_step_", method);
    all.push_back(std::move(step));
    Measurement token = timings.tokens[method];
    token.name = Concat(task, "_trained_token_", method);
    all.push_back(std::move(token));
  }
  all.insert(all.end(), over_async.begin(), over_async.end());
  all.push_back(std::move(speedup));
  for (const auto& [name, values] : timings.parts) {
    std::string plain = name;
    std::ranges::replace(plain, '/', '_');
    all.push_back({.name = Concat(task, "_", plain),
                   .unit = name.find("/time/") == std::string::npos ? "groups" : "s",
                   .repetitions = values});
  }
}

}  // namespace

Status RunGpuMethodBench(const BenchOptions& options, BenchReport& report) {
  std::vector<std::string> names = options.shapes;
  if (names.empty()) names = {"tiny", "qwen3-0.6b", kBacklogName};
  for (const std::string& name : names) {
    if (name == "tiny" || name == "qwen3-0.6b" || name == kBacklogName) continue;
    return InvalidArgument("shape = ", Printable(name), ": must be tiny, qwen3-0.6b or ",
                           kBacklogName);
  }
  PACE_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice());
  std::map<std::string, Task> tasks;
  std::string command = "pace bench methods";
  for (const std::string& assignment : options.overrides) command += " " + assignment;
  command += Concat(" --device cuda --repetitions ", options.repetitions, " --shape");
  for (const std::string& name : names) {
    PACE_ASSIGN_OR_RETURN(Task task, MakeTask(name, options));
    PACE_ASSIGN_OR_RETURN(
        MethodTimings timings,
        TimeMethods(task.settings, task.policy, task.plan, [&](const std::string& run) {
          if (options.listener) options.listener(Concat(name, ", ", run));
        }));
    AddMethodMeasurements(name, std::move(timings), report.measurements);
    tasks.emplace(name, std::move(task));
    command += " " + name;
  }
  JsonWriter& settings = report.settings();
  settings.Put("device", "cuda");
  settings.Put("warm_up_steps", kWarmUpSteps);
  settings.Put("sync_warm_up_steps", kSyncWarmUpSteps);
  settings.Put("runs_of_each", options.repetitions);
  PutOverrides(settings, options.overrides);
  for (const auto& [name, task] : tasks) {
    settings.Put(name + "_steps", task.settings.run.num_steps);
    if (task.plan.sync_steps > 0) settings.Put(name + "_sync_steps", task.plan.sync_steps);
    settings.Put(name + "_warm_up_steps", task.plan.warm_up_steps);
  }
  JsonWriter& json = report.more();
  json.Put("command", command);
  WriteGpu(device, {}, json);
  PutIntervals(json, report.measurements);
  return Status::Ok();
}

}  // namespace pace
