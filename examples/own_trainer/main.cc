// A training loop of its own under pace's coordinator: events in, commands out.
//
// The policy is one number, the logit of answering right. Two workers sample a token of every
// running response per tick, from the weights they hold; a training step takes several ticks.
// The coordinator decides which group starts where, which finished groups a step trains on and
// which are too stale. coordinator/coordinator.h states what a driver owes it.
#include <cmath>
#include <cstdint>
#include <deque>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "config/settings.h"
#include "control/admission_policy.h"
#include "control/supply_policy.h"
#include "coordinator/coordinator.h"

using namespace pace;

namespace {

constexpr int kTicksPerStep = 12;

// Prints what the coordinator decides.
class Printer : public CoordinatorObserver {
 public:
  void OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion>) override {
    std::cout << "step " << plan.step.step() << ": " << plan.occupancy << " groups in the pool\n";
  }
  void OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                    std::optional<PolicyVersion>) override {
    std::cout << "  group " << group.id.value() << ": " << Name(decision.verdict) << " ("
              << Name(decision.reason) << "), staleness " << decision.waiting << " waiting + "
              << decision.generation << " generation\n";
  }
};

struct Group {
  WorkerId worker;
  std::vector<int64_t> lengths;  // of its responses, in tokens
  int64_t num_tokens = 0;        // sampled of each response so far
  VersionRuns versions;          // which policy version sampled which tokens
  int64_t num_right = 0;         // answers
};

class OwnTrainer {
 public:
  explicit OwnTrainer(const Settings& settings)
      : group_size_(settings.NumMembers()),
        coordinator_(CoordinatorOptions::Of(settings),
                     MakeAdmissionPolicy(settings.admission, settings.batch.num_groups,
                                         static_cast<uint64_t>(settings.run.seed)),
                     MakeSupplyPolicy(settings.supply, settings.batch.num_groups), &printer_) {}

  void Run() {
    for (const int i : {0, 1}) events_.push_back(WorkerJoined{WorkerId(i), 8});
    while (!stopped_) {
      if (events_.empty()) Tick();
      for (; !events_.empty(); events_.pop_front()) {
        for (const Command& command : coordinator_.Handle(events_.front())) {
          std::visit([this](const auto& typed) { Execute(typed); }, command);
        }
      }
    }
    std::cout << "stopped at version " << coordinator_.version().step()
              << "; right answers: " << Probability(logit_) << "\n";
  }

 private:
  static double Probability(double logit) { return 1 / (1 + std::exp(-logit)); }

  void Execute(const StartGroup& command) {
    Group& group = groups_[command.group];
    group.worker = command.worker;
    std::uniform_int_distribution<int64_t> length(1, 24);
    for (int64_t i = 0; i < group_size_; ++i) group.lengths.push_back(length(random_));
  }
  void Execute(const AbandonGroup& command) { groups_.erase(command.group); }
  void Execute(const DropGroup& command) { groups_.erase(command.group); }
  void Execute(const SyncWeights& command) {
    served_[command.worker] = {command.version, logit_};
    events_.push_back(WorkerSynced{command.worker, command.version});
  }
  void Execute(const TrainBatch& command) {
    batch_ = command;
    ticks_to_train_ = kTicksPerStep;
  }
  void Execute(const Evaluate& command) { events_.push_back(EvaluationFinished{command.version}); }
  void Execute(const Checkpoint& command) { events_.push_back(CheckpointFinished{command.step}); }
  void Execute(const Stop&) { stopped_ = true; }

  // Every unfinished response grows by a token; the trainer works on its batch.
  void Tick() {
    for (auto& [id, group] : groups_) {
      const auto& [version, logit] = served_[group.worker];
      group.versions.Append(version, 1);
      ++group.num_tokens;
      for (int64_t member = 0; member < group_size_; ++member) {
        if (group.lengths[static_cast<size_t>(member)] != group.num_tokens) continue;
        group.num_right += std::bernoulli_distribution(Probability(logit))(random_) ? 1 : 0;
        events_.push_back(ResponseFinished{id, member, group.versions.segments(), {}, 0});
      }
    }
    if (ticks_to_train_ > 0 && --ticks_to_train_ == 0) Train();
  }

  // A policy-gradient step on the batch.
  void Train() {
    int64_t num_right = 0;
    for (const GroupId id : batch_.groups) num_right += groups_[id].num_right;
    for (const GroupId id : batch_.groups) groups_.erase(id);
    logit_ += 0.05 * static_cast<double>(num_right) * (1 - Probability(logit_));
    events_.push_back(StepFinished{batch_.step});
  }

  const int64_t group_size_;
  Printer printer_;
  Coordinator coordinator_;
  std::deque<Event> events_;
  std::map<GroupId, Group> groups_;
  std::map<WorkerId, std::pair<PolicyVersion, double>> served_;  // versions and their logits
  TrainBatch batch_;
  int ticks_to_train_ = 0;
  double logit_ = -1;
  bool stopped_ = false;
  std::mt19937 random_{1};
};

}  // namespace

int main() {
  const Result<Settings> settings = LoadSettings(
      "math-4b", {"batch.num_groups=4", "batch.group_size=4", "run.num_steps=12",
                  "supply.threshold=4", "admission.variant=raw", "admission.min_observations=8"});
  OwnTrainer(settings.value()).Run();
}
