// RunWarnings says in one line what a person should know while a run goes on: that
// nothing is rejected yet, that nothing is learned, that updates are skipped.
//
// A pure state machine: facts of finished steps in, lines out. A line comes with
// the first step that calls for it and then at doubling intervals, so that a
// long run repeats it rarely.
//
//   RunWarnings warnings(options);
//   for (const RunWarning& warning : warnings.OnStep(facts)) Show(warning.text);
//
// Thread-safety: none.
#ifndef PACE_RECORD_RUN_WARNINGS_H_
#define PACE_RECORD_RUN_WARNINGS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pace {

enum class WarningKind {
  kWarmingUp,        // the admission policy lacks scores and admits everything
  kEqualRewards,     // no group has two different rewards
  kNeverCorrect,     // no response has been correct
  kSkippedUpdates,   // an update was not finite
  kOverBudget,       // a step rejected far more than its budget
  kDroppedGroups,    // dynamic sampling drops one group after another
  kIgnoredSettings,  // settings that this driver does not read
  kFailedRewards,    // a reward of the user's, or an environment, failed
  kRoundedRollouts,  // responses of rounded weights, and ratios to their log-probabilities
};
inline constexpr size_t kNumWarningKinds = static_cast<size_t>(WarningKind::kRoundedRollouts) + 1;

// "warming_up" and so on, as warnings.jsonl has them.
std::string_view Name(WarningKind kind);
std::optional<WarningKind> WarningKindFromName(std::string_view name);

struct RunWarning {
  WarningKind kind = WarningKind::kWarmingUp;
  int64_t step = 0;  // that called for it
  std::string text = {};

  friend bool operator==(const RunWarning&, const RunWarning&) = default;
};

// One line of warnings.jsonl, without newline.
std::string WarningLine(const RunWarning& warning);
Result<RunWarning> ParseWarningLine(std::string_view line);

// What does not change in a run.
struct WarningOptions {
  std::string method = "PACE";    // as it is shown
  int64_t min_observations = 32;  // scores before anything is rejected
  // What judges responses, as a setting: "task.verifier = dapo-int".
  std::string verifier = {};
  // Whether a group of equal rewards teaches nothing: it has several members, and
  // advantages compare them with each other.
  bool compares_members = true;
};

// What one finished step was like.
struct StepFacts {
  int64_t step = 0;
  bool warming_up = false;  // a group was admitted because scores are few
  int64_t num_scores = 0;   // observed so far
  std::optional<double> budget = {};
  int64_t num_offered = 0;  // groups
  int64_t num_rejected = 0;
  int64_t num_trained = 0;        // groups
  int64_t num_equal_rewards = 0;  // of these, all members with one reward
  int64_t num_responses = 0;      // of all groups drawn
  int64_t num_correct = 0;
  double num_skipped_updates = 0;
  std::string last_response = {};  // any text; shown in one line
};

class RunWarnings {
 public:
  // A warning is shown at its occurrence 1, 2, 4, 8, ...
  struct Repeats {
    int64_t count = 0;
    int64_t next = 1;
    bool Occurs();
  };
  // What a checkpoint keeps, so that a resumed run warns at the same steps.
  struct State {
    // Of the kinds that checkpoints have always had, in their order; later ones have their own.
    std::array<Repeats, static_cast<size_t>(WarningKind::kIgnoredSettings) + 1> repeats = {};
    Repeats failed_rewards = {};
    int64_t num_equal_steps = 0;  // in a row
    int64_t num_wrong_steps = 0;  // since the run began
    int64_t num_wrong_responses = 0;
    bool any_correct = false;
    int64_t num_dropped = 0;  // in a row
  };

  explicit RunWarnings(WarningOptions options) : options_(std::move(options)) {}

  const State& state() const { return state_; }
  void Restore(const State& state) { state_ = state; }

  std::vector<RunWarning> OnStep(const StepFacts& facts);
  // Dynamic sampling dropped a group of equal rewards before step `step`.
  std::vector<RunWarning> OnGroupDropped(int64_t step, int64_t batch,
                                         std::string_view last_response);
  // A reward or an environment failed while step `step` filled; `text` says of which problem, and
  // why. The last one before the run ends is always shown.
  std::vector<RunWarning> OnFailedReward(int64_t step, std::string_view text, bool last);

 private:
  void Add(std::vector<RunWarning>& out, WarningKind kind, int64_t step, std::string text);
  bool TeachesNothing(const StepFacts& facts, std::vector<RunWarning>& out);
  void CheckBudget(const StepFacts& facts, std::vector<RunWarning>& out);
  std::string Ask(std::string_view last_response) const;

  const WarningOptions options_;
  State state_;
};

// Text of a response for one line: control characters and line ends become
// spaces, and of a long one the end stays, where answers are.
std::string OneLine(std::string_view text, size_t most_characters = 120);

}  // namespace pace

#endif  // PACE_RECORD_RUN_WARNINGS_H_
