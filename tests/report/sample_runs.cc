#include "sample_runs.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "config/methods.h"
#include "core/check.h"

namespace pace {
namespace {

constexpr int64_t kBatch = 12;

// A queue in miniature: production outruns training by a third, a filter
// brings the occupancy back to the batch.
class SampleMaker {
 public:
  SampleMaker(const std::string& method, int64_t num_steps)
      : method_(method), num_steps_(num_steps), random_(static_cast<uint32_t>(7)) {
    Settings settings;
    settings.run.num_steps = num_steps;
    settings.compare.reference = {"async:26.19", "raw:26.5", "effective:28.22", "sync:97.01"};
    Result<Settings> applied = ApplyMethod(settings, method);
    PACE_CHECK(applied.ok(), applied.status().message());
    run_.settings = std::move(*applied);
    run_.manifest = {
        method,         "sim", MethodName(run_.settings.admission), "decisions", "0.1.0",
        "0123456789ab", 1};
    run_.has_decisions = true;
  }

  RunData Make() {
    for (int64_t step = 0; step < num_steps_; ++step) Step(step);
    return std::move(run_);
  }

 private:
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
    occupancy_ += 16 - static_cast<double>(offered.size()) + 1.5 * Normal();
    occupancy_ = std::clamp(occupancy_, 0.0, 80.0);
    generated_ += 16.0 * 12 * 1900;
    never_trained_ += static_cast<double>(offered.size() - trained.size()) * 12 * 1900;
    m.Set("cost/tokens_generated", generated_);
    m.Set("cost/tokens_never_trained", never_trained_);
    m.Set("cost/per_trained_prompt", 6 * (sync() ? 97.0 : 27.0) / kBatch);
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
  // Specified by the standard to the bit, unlike its distributions.
  std::mt19937 random_;
  RunData run_;
  double occupancy_ = 4;
  double budget_ = 0;
  double generated_ = 0;
  double never_trained_ = 0;
};

}  // namespace

RunData SampleRun(const std::string& method, int64_t num_steps) {
  return SampleMaker(method, num_steps).Make();
}

RunData SampleRunWithoutDecisions(const std::string& method, int64_t num_steps) {
  RunData run = SampleRun(method, num_steps);
  run.has_decisions = false;
  run.decisions.clear();
  run.manifest.record = "metrics";
  return run;
}

}  // namespace pace
