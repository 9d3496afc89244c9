// pace sft
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/open_policy.h"
#include "config/settings.h"
#include "execution/evaluator.h"
#include "execution/gpu_plan.h"
#include "execution/policy.h"
#include "execution/run.h"
#include "execution/supervised.h"
#include "record/run_directory.h"
#include "terminal/interrupt.h"

namespace pace {
namespace {

struct SftArguments {
  std::string settings;
  std::vector<std::string> overrides;
  std::string out;     // the model's folder
  bool fresh = false;  // random weights of the shape that `model` describes
  bool half = false;   // write bf16
};

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// A line now and then: often enough to watch, rarely enough to read.
class LossLines {
 public:
  explicit LossLines(int64_t num_steps) : num_steps_(num_steps), start_(SteadyClock::now()) {}

  void Add(const SupervisedStep& step) {
    sum_ += step.loss;
    num_tokens_ += step.num_tokens;
    ++count_;
    const bool last = step.step + 1 == num_steps_;
    if (!last && SecondsSince(shown_) < 2) return;
    const double elapsed = SecondsSince(start_);
    const auto done = static_cast<double>(step.step + 1);
    const double left = elapsed / done * (static_cast<double>(num_steps_) - done);
    std::fprintf(stderr, "step %lld of %lld  loss %.4f  lr %.2g  %.0f tokens/s  %.0f s left\n",
                 static_cast<long long>(step.step + 1), static_cast<long long>(num_steps_),
                 sum_ / count_, step.learning_rate, static_cast<double>(num_tokens_) / elapsed,
                 left);
    shown_ = SteadyClock::now();
    sum_ = 0;
    count_ = 0;
  }

 private:
  const int64_t num_steps_;
  const SteadyClock::time_point start_;
  SteadyClock::time_point shown_{};
  double sum_ = 0;
  double count_ = 0;
  int64_t num_tokens_ = 0;
};

Status CheckTarget(const std::string& out) {
  PACE_RETURN_IF_ERROR(CheckCanHold(out).At("--out"));
  std::error_code error;
  if (std::filesystem::exists(out, error) && !std::filesystem::is_empty(out, error)) {
    return InvalidArgument("--out ", out, ": is not empty (name a new folder)");
  }
  return Status::Ok();
}

Status PrintScores(Evaluator& evaluator, const WeightSet& weights) {
  PACE_ASSIGN_OR_RETURN(const std::vector<BenchmarkScore> scores, evaluator.Run(weights));
  for (const BenchmarkScore& score : scores) {
    std::fprintf(stderr, "%s: mean@%lld %.3f +- %.3f, pass@%lld %.3f, %.1f tokens\n",
                 score.name.c_str(), static_cast<long long>(score.num_responses), score.mean,
                 score.mean_half_width, static_cast<long long>(score.num_responses), score.pass,
                 score.mean_length);
  }
  return Status::Ok();
}

Result<int> RunSft(const SftArguments& arguments) {
  PACE_RETURN_IF_ERROR(CheckTarget(arguments.out));
  PACE_ASSIGN_OR_RETURN(const Settings settings,
                        LoadSettings(arguments.settings, arguments.overrides));
  PACE_ASSIGN_OR_RETURN(
      const Policy policy,
      arguments.fresh
          ? NewCharacterPolicy(settings.model, static_cast<uint64_t>(settings.run.seed),
                               settings.task.kind == TaskKind::kProduct ? CharacterSet::kTools
                                                                        : CharacterSet::kArithmetic)
          : OpenPolicy(settings.policy));
  PACE_RETURN_IF_ERROR(PrepareGpu(settings, policy.config));
  PACE_ASSIGN_OR_RETURN(const std::shared_ptr<ToolExecutor> executor,
                        ToolExecutor::Open(settings.tools));
  PACE_ASSIGN_OR_RETURN(const ExampleSource examples,
                        SupervisedExamples(settings, policy, executor));
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<RewardPool> rewards, OpenRewards(settings));
  PACE_ASSIGN_OR_RETURN(Evaluator evaluator,
                        Evaluator::Create(settings, policy, executor, std::move(rewards)));
  std::fprintf(stderr, "training %lld parameters\n",
               static_cast<long long>(policy.config.num_parameters()));
  const StopSignals signals;
  LossLines lines(settings.sft.num_steps);
  int64_t steps_done = 0;
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                        RunSupervised(settings, policy, examples, [&](const SupervisedStep& step) {
                          lines.Add(step);
                          steps_done = step.step + 1;
                          return signals.signal() == 0;
                        }));
  PACE_ASSIGN_OR_RETURN(const WeightSet weights, trainer->HostSnapshot());
  const Dtype dtype = arguments.half ? Dtype::kBF16 : Dtype::kF32;
  PACE_RETURN_IF_ERROR(SavePolicy(arguments.out, policy, weights, dtype));
  std::fprintf(stderr, "wrote %s\n", arguments.out.c_str());
  if (steps_done < settings.sft.num_steps) {
    std::fprintf(stderr, "stopped by %s after step %lld of %lld\n", signals.name().c_str(),
                 static_cast<long long>(steps_done),
                 static_cast<long long>(settings.sft.num_steps));
    return StopSignals::kExitCode;
  }
  PACE_RETURN_IF_ERROR(PrintScores(evaluator, weights));
  return 0;
}

}  // namespace

void AddSft(const CommandLine& line) {
  line.Add<SftArguments>(
      kSftCommand.name, kSftCommand.what,
      "pace sft tiny-base --fresh --out models/mine\n"
      "  pace sft tiny policy.model=models/mine task.kind=dataset "
      "task.file=examples.jsonl --out models/tuned",
      [](CLI::App& app, SftArguments& arguments) {
        app.add_option("settings", arguments.settings, kSettingsHelp)->required();
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_option("--out", arguments.out, "Folder for the trained model")->required();
        app.add_flag(
            "--fresh", arguments.fresh,
            "Begin with random weights of the shape that the settings' model section says");
        app.add_flag("--bf16", arguments.half, "Write the weights as bf16 (default: float32)");
      },
      RunSft);
}

}  // namespace pace
