// NaiveEngine: the rules of sim/engine.h, token by token. It stays as the
// reference that the closed form must equal.
#ifndef PACE_SIM_NAIVE_ENGINE_H_
#define PACE_SIM_NAIVE_ENGINE_H_

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "cluster/cost_model.h"
#include "sim/engine.h"

namespace pace {

struct NaiveCommand {
  double time = 0;
  std::optional<int> start;  // a response
  std::optional<PolicyVersion> sync;
};

struct NaiveResponse {
  int64_t prompt = 0;
  bool prefills = true;
  int64_t num_tokens = 0;
  // Out.
  std::vector<PolicyVersion> versions{};  // one per token
  double finished = 0;
};

// Runs all commands to the end. Commands are sorted by time.
class NaiveEngine {
 public:
  NaiveEngine(const CostModel& costs, const EngineOptions& options,
              std::vector<NaiveResponse>& responses)
      : costs_(costs), options_(options), responses_(responses) {}

  void Run(const std::vector<NaiveCommand>& commands) {
    size_t next = 0;
    while (next < commands.size() || !queue_.empty() || !active_.empty()) {
      if (active_.empty() && queue_.empty() && !sync_.has_value()) {
        time_ = std::max(time_, commands[next].time);
      }
      FinishResponses();
      // What arrives while the engine syncs or prefills is seen before the next
      // iteration too.
      do {
        for (; next < commands.size() && commands[next].time <= time_; ++next) {
          if (commands[next].start.has_value()) queue_.push_back(*commands[next].start);
          if (commands[next].sync.has_value()) sync_ = commands[next].sync;
        }
        Prepare();
      } while (next < commands.size() && commands[next].time <= time_);
      Decode();
    }
  }

  int num_preempted = 0;

 private:
  struct Slot {
    int response;
    int64_t order;
  };

  int64_t Context(int response) const {
    const NaiveResponse& r = responses_[static_cast<size_t>(response)];
    return r.prompt + static_cast<int64_t>(r.versions.size());
  }
  int64_t TotalContext() const {
    int64_t sum = 0;
    for (const Slot& slot : active_) sum += Context(slot.response);
    return sum;
  }

  void FinishResponses() {
    for (size_t i = 0; i < active_.size();) {
      NaiveResponse& r = responses_[static_cast<size_t>(active_[i].response)];
      if (static_cast<int64_t>(r.versions.size()) == r.num_tokens) {
        r.finished = time_;
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  void Prepare() {
    if (sync_.has_value()) Sync();
    const auto count = [this] { return static_cast<int64_t>(active_.size()); };
    while (count() > 1 && TotalContext() + count() > options_.kv_capacity) Preempt();
    const auto room = static_cast<int64_t>(0.99 * static_cast<double>(options_.kv_capacity));
    while (!queue_.empty() && count() < options_.slots) {
      const int index = queue_.front();
      if (count() > 0 && TotalContext() + Context(index) + count() + 1 > room) break;
      queue_.pop_front();
      Admit(index);
    }
  }

  void Decode() {
    if (active_.empty()) return;
    time_ += costs_.Decode(static_cast<int64_t>(active_.size())).Iteration(TotalContext());
    for (const Slot& slot : active_) {
      responses_[static_cast<size_t>(slot.response)].versions.push_back(version_);
    }
  }

  void Sync() {
    time_ += costs_.SyncSeconds();
    version_ = *sync_;
    sync_.reset();
    PassSize rebuilt, scored_pass;
    double scored = 0;
    for (const Slot& slot : active_) {
      const NaiveResponse& r = responses_[static_cast<size_t>(slot.response)];
      rebuilt += PassSize::Extending(0, static_cast<double>(Context(slot.response)));
      const auto done = static_cast<int64_t>(r.versions.size());
      if (done < options_.prefix.min_tokens) continue;
      const int64_t prefix = std::min(done, options_.prefix.max_tokens);
      scored += static_cast<double>(prefix);
      scored_pass += PassSize::Extending(0, static_cast<double>(r.prompt + prefix));
    }
    if (options_.rescore && scored > 0) time_ += costs_.RescoreSeconds(scored, scored_pass);
    if (options_.reprefill && !active_.empty()) time_ += costs_.PrefillSeconds(rebuilt);
  }

  void Preempt() {
    const auto youngest =
        std::max_element(active_.begin(), active_.end(),
                         [](const Slot& a, const Slot& b) { return a.order < b.order; });
    uncached_[youngest->response] = Context(youngest->response);
    left_version_[youngest->response] = version_;
    queue_.push_front(youngest->response);
    active_.erase(youngest);
    ++num_preempted;
  }

  void Admit(int index) {
    const NaiveResponse& r = responses_[static_cast<size_t>(index)];
    int64_t uncached = r.versions.empty() && r.prefills ? r.prompt : 0;
    const bool left = left_version_.contains(index);
    if (left) uncached = uncached_[index];
    const bool synced = left && left_version_[index] != version_;
    const double context = static_cast<double>(Context(index));
    if (synced && options_.reprefill) uncached = Context(index);
    time_ += costs_.PrefillSeconds(PassSize::Extending(context - static_cast<double>(uncached),
                                                       static_cast<double>(uncached)));
    const auto done = static_cast<int64_t>(r.versions.size());
    if (synced && options_.rescore && done >= options_.prefix.min_tokens) {
      const auto scored = static_cast<double>(std::min(done, options_.prefix.max_tokens));
      time_ += costs_.RescoreSeconds(
          scored, PassSize::Extending(0, static_cast<double>(r.prompt) + scored));
    }
    active_.push_back({index, next_order_++});
  }

  const CostModel& costs_;
  const EngineOptions& options_;
  std::vector<NaiveResponse>& responses_;
  double time_ = 0;
  PolicyVersion version_;
  std::optional<PolicyVersion> sync_;
  std::vector<Slot> active_;
  std::deque<int> queue_;
  std::map<int, int64_t> uncached_;
  std::map<int, PolicyVersion> left_version_;
  int64_t next_order_ = 0;
};

}  // namespace pace

#endif  // PACE_SIM_NAIVE_ENGINE_H_
