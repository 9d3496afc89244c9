// Throughput: groups produced and consumed per step, over the last five steps.
#ifndef PACE_COORDINATOR_THROUGHPUT_H_
#define PACE_COORDINATOR_THROUGHPUT_H_

#include <cstdint>
#include <deque>

namespace pace {

class Throughput {
 public:
  static constexpr size_t kWindowSteps = 5;

  struct Step {
    int64_t num_produced = 0;  // groups that were assembled
    int64_t num_consumed = 0;  // groups that were trained
  };

  void AddProduced() { ++current_.num_produced; }
  void AddConsumed(int64_t num_groups) { current_.num_consumed += num_groups; }
  // Ends the current step.
  void EndStep() {
    steps_.push_back(current_);
    if (steps_.size() > kWindowSteps) steps_.pop_front();
    current_ = {};
  }

  // Means over the ended steps in the window; 0 before the first.
  double produced() const { return Mean(&Step::num_produced); }
  double consumed() const { return Mean(&Step::num_consumed); }

  const std::deque<Step>& steps() const { return steps_; }
  const Step& current() const { return current_; }
  void Restore(std::deque<Step> steps, Step current) {
    steps_ = std::move(steps);
    current_ = current;
  }

 private:
  double Mean(int64_t Step::* count) const {
    if (steps_.empty()) return 0;
    int64_t sum = 0;
    for (const Step& step : steps_) sum += step.*count;
    return static_cast<double>(sum) / static_cast<double>(steps_.size());
  }

  std::deque<Step> steps_;
  Step current_;
};

}  // namespace pace

#endif  // PACE_COORDINATOR_THROUGHPUT_H_
