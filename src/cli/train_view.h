// TrainView: a training run as the terminal shows it (live_view.h).
// Thread-safety: none.
#ifndef PACE_CLI_TRAIN_VIEW_H_
#define PACE_CLI_TRAIN_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "execution/run.h"
#include "terminal/live_view.h"

namespace pace {

class TrainView final : public RunObserver {
 public:
  // `filters`: the method rejects groups, and so has a budget to show.
  TrainView(std::string run, std::string method, int64_t num_steps, bool filters);

  void OnStep(int64_t steps_done, const MetricsRow& row) override;
  void OnEvaluation(PolicyVersion version, const std::vector<BenchmarkScore>& scores) override;
  void OnCheckpoint(const std::string& folder) override;
  void OnPulse(const RunPulse& pulse) override;
  void OnWarning(const std::string& text) override;
  void OnNote(const std::string& note) override;
  void Finish(LiveEnd end) { view_.Finish(end); }

 private:
  void Show();

  const WallClock clock_;
  LiveView view_;
  LiveStatus status_;
  bool began_ = false;
};

}  // namespace pace

#endif  // PACE_CLI_TRAIN_VIEW_H_
