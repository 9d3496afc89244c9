#include "cli/train_view.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "core/concat.h"
#include "core/utf8.h"

namespace pace {
namespace {

constexpr size_t kMostNameCharacters = 60;

}  // namespace

TrainView::TrainView(std::string run, std::string method, int64_t num_steps, bool filters)
    : view_(STDERR_FILENO) {
  status_.filters = filters;
  status_.run = std::move(run);
  status_.method = std::move(method);
  status_.num_steps = num_steps;
}

void TrainView::Show() {
  status_.elapsed = clock_.Now();
  view_.Update(status_);
}

void TrainView::OnStep(int64_t steps_done, const MetricsRow& row) {
  if (!std::exchange(began_, true)) status_.first_step = steps_done - 1;
  status_.step = steps_done;
  status_.row = row;
  Show();
}

void TrainView::OnEvaluation(PolicyVersion version, const std::vector<BenchmarkScore>& scores) {
  for (const BenchmarkScore& score : scores) {
    std::array<char, 128> numbers{};
    std::snprintf(numbers.data(), numbers.size(), "mean@%lld %.3f +- %.3f, pass@%lld %.3f",
                  static_cast<long long>(score.num_responses), score.mean, score.mean_half_width,
                  static_cast<long long>(score.num_responses), score.pass);
    const size_t cut = OffsetOfCodePoint(score.name, kMostNameCharacters);
    view_.Note(Concat("version ", version, ": ", score.name.substr(0, cut),
                      cut < score.name.size() ? "..." : "", " ", numbers.data()));
  }
  if (scores.empty()) return;
  // The first benchmark stands for all.
  if (!status_.accuracy.has_value()) {
    status_.accuracy = LiveAccuracy{.benchmark = scores.front().name, .start = {}, .now = 0};
    if (version.step() == 0) status_.accuracy->start = scores.front().mean;
  }
  status_.accuracy->now = scores.front().mean;
  status_.accuracy->version = version.step();
  Show();
}

void TrainView::OnCheckpoint(const std::string& folder) {
  view_.Note("saved " + folder);
}

void TrainView::OnPulse(const RunPulse& pulse) {
  status_.waits_for = pulse.waiting;
  status_.tokens_per_s = pulse.tokens_per_second;
  status_.occupancy = pulse.occupancy;
  Show();
}

void TrainView::OnWarning(const std::string& text) {
  view_.Note("warning: " + text);
}

void TrainView::OnNote(const std::string& note) {
  view_.Note(note);
}

}  // namespace pace
