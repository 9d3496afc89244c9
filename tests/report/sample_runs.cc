#include "sample_runs.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "config/methods.h"
#include "core/check.h"

namespace pace {
namespace {

constexpr int64_t kBatch = 12;

// A queue in miniature: production outruns training by a third, a filter
// brings the occupancy back to the batch.
class SampleMaker {
 public:
  SampleMaker(const std::string& method, int64_t num_steps, std::vector<std::string> benchmarks)
      : method_(method),
        num_steps_(num_steps),
        benchmarks_(std::move(benchmarks)),
        random_(static_cast<uint32_t>(7)) {
    Settings settings;
    settings.run.num_steps = num_steps;
    settings.compare.reference = {"async:26.19", "raw:26.5", "effective:28.22", "sync:97.01"};
    Result<Settings> applied = ApplyMethod(settings, method);
    PACE_CHECK(applied.ok(), applied.status().message());
    run_.settings = std::move(*applied);
    run_.manifest = {
        method,         "sim", MethodName(run_.settings.admission), "decisions", "0.1.0",
        "0123456789ab", 1};
    run_.settings.generation.max_tokens = 4096;
    run_.has_decisions = true;
  }

  RunData Make() {
    if (!benchmarks_.empty()) AddResponses();
    if (!benchmarks_.empty()) {
      run_.manifest.driver = "lab";
      run_.manifest.device = "cpu";
      run_.manifest.torch = "2.13.0";
      run_.manifest.threads = 2;
      Evaluate(0);
    }
    const int64_t period = std::max<int64_t>(1, num_steps_ / 12);
    for (int64_t step = 0; step < num_steps_; ++step) {
      Step(step);
      if (!benchmarks_.empty() && (step + 1) % period == 0) Evaluate(step + 1);
    }
    return std::move(run_);
  }

 private:
  void AddResponses() {
    ResponseRecord record;
    record.head = {
        .step = 7, .group = 31, .member = 2, .reward = 1, .reason = Reason::kUnderCutoff};
    record.problem = 31;
    record.correct = true;
    record.waiting = 2;
    record.generation = 0.4;
    record.lag = 2.4;
    record.finish = "stop_token";
    record.length = 120;
    record.answer = record.extracted.emplace("34");
    record.prompt = "<|im_start|>user\nWhat is 1 + 33?<|im_end|>\n<|im_start|>assistant\n";
    record.turns = {{false, "<tool_call>print(1 + 33)</tool_call>"},
                    {true, "34\n"},
                    {false, "So it is 34.\n\nAnswer: 34<|im_end|>"}};
    record.picked = {"best", "random"};
    run_.responses.push_back(record);
    record.head.reward = -1;
    record.head.reason = Reason::kOverCutoff;
    record.admitted = record.correct = false;
    record.extracted.reset();
    record.finish = "max_tokens";
    record.turns = {{false, "<script>document.title = 'run'</script> " + std::string(900, 'w') +
                                "\n" + std::string(40, '\n') + "the end"}};
    record.picked = {"worst", "over_cutoff"};
    run_.responses.push_back(record);
    record.benchmark = benchmarks_.front();
    record.head.reason.reset();
    run_.evaluated.push_back(record);
    run_.warnings = {{WarningKind::kWarmingUp, 2, "PACE is warming up: 16 of 32 scores"},
                     {WarningKind::kEqualRewards, 9, "nothing is learned: \"<b>x</b>\""}};
  }

  double Uniform() { return static_cast<double>(random_()) / 4294967296.0; }
  double Normal() {
    return std::sqrt(-2 * std::log(1 - Uniform())) * std::cos(6.283185307 * Uniform());
  }

  bool sync() const { return method_ == "sync"; }
  bool filters() const { return !sync() && method_ != "async"; }
  bool scores_prefixes() const { return method_ == "effective" || method_ == "async"; }

  DecisionRow Draw(int64_t step) {
    DecisionRow row;
    row.step = step;
    const double difficulty = Normal();
    row.length =
        static_cast<float>(std::min(8192.0, 1700 * std::exp(0.35 * difficulty + 0.25 * Normal())));
    row.reward =
        static_cast<float>(std::round(12 / (1 + std::exp(1.3 * difficulty + 0.4 * Normal()))) / 12);
    row.turns = 1;
    if (sync()) return row;
    row.waiting_assembly = static_cast<float>(std::abs(0.25 * Normal()) + 0.3);
    row.waiting = row.waiting_assembly +
                  static_cast<float>(std::max(0.0, std::round(occupancy_ / kBatch + Normal())));
    row.generation = static_cast<float>(row.length / 2600.0 * (0.6 + 0.3 * Uniform()));
    double weight = 1;
    if (scores_prefixes() && row.generation > 0.25f) {
      row.prefix_score =
          static_cast<float>(0.015 + 0.02 * row.generation + 0.006 * std::abs(Normal()));
      const double q = std::clamp((*row.prefix_score - 0.015) / 0.05, 0.02, 0.98);
      weight = std::pow(q, 4) / (std::pow(q, 4) + std::pow(1 - q, 4));
    }
    row.score = row.waiting + static_cast<float>(weight) * row.generation;
    return row;
  }

  void Step(int64_t step) {
    MetricsTable& m = run_.metrics;
    m.AddRow(step);
    m.Set("pool/occupancy", sync() ? 0 : std::round(occupancy_));
    const double target = std::clamp((occupancy_ - kBatch) / std::max(occupancy_, 1.0), 0.0, 0.9);
    budget_ = 0.9 * budget_ + 0.1 * target;
    const bool active = filters() && step > 3 && budget_ > 0;
    const double cutoff = occupancy_ / kBatch + 1.3 - 1.5 * budget_;
    if (filters()) m.Set("admission/budget", budget_);
    if (active) m.Set("admission/cutoff", cutoff);
    std::vector<DecisionRow> offered, trained;
    while (trained.size() < kBatch) {
      DecisionRow row = Draw(step);
      row.reason = filters() ? Reason::kUnderCutoff : Reason::kUnfiltered;
      if (active && row.score > cutoff && offered.size() < 4 * kBatch) {
        row.verdict = Verdict::kReject;
        row.reason = Reason::kOverCutoff;
      } else {
        trained.push_back(row);
      }
      offered.push_back(row);
    }
    run_.decisions.insert(run_.decisions.end(), offered.begin(), offered.end());
    m.Set("admission/offered", static_cast<double>(offered.size()));
    m.Set("admission/rejected", static_cast<double>(offered.size() - trained.size()));
    SetMeans(offered, trained);
    SetTimes();
    if (!benchmarks_.empty()) SetLearning(step);
    occupancy_ += 16 - static_cast<double>(offered.size()) + 1.5 * Normal();
    occupancy_ = std::clamp(occupancy_, 0.0, 80.0);
    generated_ += 16.0 * 12 * 1900;
    never_trained_ += static_cast<double>(offered.size() - trained.size()) * 12 * 1900;
    m.Set("cost/tokens_generated", generated_);
    m.Set("cost/tokens_never_trained", never_trained_);
    m.Set("cost/per_trained_prompt", 6 * (sync() ? 97.0 : 27.0) / kBatch);
  }

  // How far the model has come, from 0 to 1: slower the staler its data.
  double Skill(int64_t step) const {
    double pace = 1;
    if (method_ == "async") pace = 0.55;
    if (method_ == "raw") pace = 0.75;
    if (method_ == "effective") pace = 0.95;
    const double progress = pace * 4 * static_cast<double>(step) / static_cast<double>(num_steps_);
    return 1 - std::exp(-progress * progress / (0.6 + progress));
  }

  void SetLearning(int64_t step) {
    MetricsTable& m = run_.metrics;
    const double skill = Skill(step);
    m.Set("train/loss", 0.02 * Normal());
    m.Set("train/reward", std::clamp(0.22 + 0.55 * skill + 0.06 * Normal(), 0.0, 1.0));
    m.Set("train/entropy", 0.25 + 0.7 * std::exp(-2 * skill) + 0.02 * Normal());
    m.Set("train/grad_norm", 0.35 + 0.1 * std::abs(Normal()) + 0.2 * (1 - skill));
    m.Set("train/clip_fraction", (sync() ? 0.0005 : 0.004) * (1 + 0.3 * std::abs(Normal())));
    m.Set("train/kl", (sync() ? 0.0002 : 0.0015) * (1 + 0.4 * Normal()));
    m.Set("train/ess", 1 - (sync() ? 0.01 : 0.12) * std::abs(Normal()));
    m.Set("train/lr", 1e-6);
    m.Set("selection/equal_rewards_trained",
          std::clamp(0.2 + 0.4 * std::abs(skill - 0.4) + 0.05 * Normal(), 0.0, 1.0));
    m.Set("selection/truncated_trained", std::clamp(0.05 + 0.02 * Normal(), 0.0, 1.0));
    m.Set("rollout/tokens_per_s", sync() ? 900 : 2400 + 100 * Normal());
    m.Set("worker/0/tokens_per_s", 800 + 20 * Normal());
    m.Set("worker/0/first_token_s", 0.05);
    m.Set("worker/0/pauses", 1);
    m.Set("worker/0/pause_s", 0.02);
    m.Set("worker/0/failures", 0);
    m.Set("rollout/busy", std::clamp((sync() ? 0.75 : 0.95) + 0.03 * Normal(), 0.0, 1.0));
  }

  void Evaluate(int64_t version) {
    MetricsTable& e = run_.evaluations;
    e.AddRow(version);
    e.Set("time", time_);
    double ease = 1;
    for (const std::string& name : benchmarks_) {
      const double mean =
          std::clamp(ease * (0.18 + 0.6 * Skill(version)) + 0.012 * Normal(), 0.0, 1.0);
      e.Set("eval/" + name + "/mean@4", mean);
      e.Set("eval/" + name + "/mean@4_half_width", 0.02 + 0.05 * mean * (1 - mean));
      e.Set("eval/" + name + "/length", 900 + 700 * Skill(version) + 20 * Normal());
      ease *= 0.8;
    }
  }

  void SetMeans(const std::vector<DecisionRow>& offered, const std::vector<DecisionRow>& trained) {
    const auto mean = [](const std::vector<DecisionRow>& rows, float DecisionRow::* field) {
      double sum = 0;
      for (const DecisionRow& row : rows) sum += row.*field;
      return sum / static_cast<double>(rows.size());
    };
    MetricsTable& m = run_.metrics;
    const double waiting = mean(trained, &DecisionRow::waiting);
    const double assembly = mean(trained, &DecisionRow::waiting_assembly);
    m.Set("staleness/waiting/mean", waiting);
    m.Set("staleness/waiting_assembly/mean", assembly);
    m.Set("staleness/waiting_pool/mean", waiting - assembly);
    m.Set("staleness/generation/mean", mean(trained, &DecisionRow::generation));
    m.Set("staleness/effective/mean", mean(trained, &DecisionRow::score));
    m.Set("selection/length_offered", mean(offered, &DecisionRow::length));
    m.Set("selection/length_trained", mean(trained, &DecisionRow::length));
    m.Set("selection/reward_offered", mean(offered, &DecisionRow::reward));
    m.Set("selection/reward_trained", mean(trained, &DecisionRow::reward));
    m.Set("selection/turns_offered", 1);
    m.Set("selection/turns_trained", 1);
  }

  void SetTimes() {
    const double wait = sync() ? 70 + Normal() : std::abs(0.4 * Normal());
    const double train = 21 + 0.5 * Normal();
    const double visible = method_ == "effective" ? 1.1 : 0;
    time_ += wait + train + 3.5 + visible + 0.6;
    run_.metrics.Set("time", time_);
    run_.metrics.Set("time/step", wait + train + 3.5 + visible + 0.6);
    run_.metrics.Set("time/wait_data", wait);
    run_.metrics.Set("time/train", train);
    run_.metrics.Set("time/sync", 3.5);
    run_.metrics.Set("time/rescore_visible", visible);
    run_.metrics.Set("time/other", 0.6);
    run_.metrics.Set("time/rescore_hidden", method_ == "effective" ? 4.2 : 0);
  }

  const std::string method_;
  const int64_t num_steps_;
  const std::vector<std::string> benchmarks_;  // none: a run without a model
  // Specified by the standard to the bit, unlike its distributions.
  std::mt19937 random_;
  RunData run_;
  double occupancy_ = 4;
  double budget_ = 0;
  double generated_ = 0;
  double never_trained_ = 0;
  double time_ = 0;
};

}  // namespace

RunData SampleRun(const std::string& method, int64_t num_steps) {
  return SampleMaker(method, num_steps, {}).Make();
}

RunData SampleTrainingRun(const std::string& method, int64_t num_steps,
                          const std::vector<std::string>& benchmarks) {
  return SampleMaker(method, num_steps, benchmarks).Make();
}

RunData SampleRunWithoutDecisions(const std::string& method, int64_t num_steps) {
  RunData run = SampleRun(method, num_steps);
  run.has_decisions = false;
  run.decisions.clear();
  run.manifest.record = "metrics";
  return run;
}

}  // namespace pace
