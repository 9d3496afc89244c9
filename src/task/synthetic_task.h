// SyntheticTask: problems that are generated, with worked solutions.
//
// A task has kinds of exercises (the length of a list, say). At first draws the
// kind, then exercises of that kind until one lies on the wanted side of the
// held-out split (held_out_split.h): the split does not bend the law of kinds,
// and the sides are disjoint by construction.
//
// Most solutions end in the answer marker and the answer, the form in which
// GSM8K solutions end, so the verifier mode of most tasks is `gsm8k`:
//
//   prompt  12+07+93=        worked  12,19,12#### 12        bare  #### 12
//
// Thread-safety: immutable.
#ifndef PACE_TASK_SYNTHETIC_TASK_H_
#define PACE_TASK_SYNTHETIC_TASK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/task_options.h"
#include "core/random.h"
#include "core/status.h"
#include "reward/verifier.h"

namespace pace {

inline constexpr std::string_view kAnswerMarker = "#### ";

struct Exercise {
  std::string prompt;
  std::string answer;
  std::string steps;  // what a worked solution writes before the marker, or has computed
  std::string key;    // the content, whatever the order of terms

  // The two forms of a solution, without an end token.
  std::string Worked() const;
  std::string Bare() const;
};

// What an exercise is drawn for. Each has its own random stream; held-out
// exercises also lie on their own side of the split.
enum class Purpose { kTraining, kSupervised, kHeldOut };

// Random numbers of one attempt at one exercise.
class ExerciseDraw {
 public:
  ExerciseDraw(const CounterRandom& random, uint64_t index, uint64_t attempt)
      : random_(random), index_(index), attempt_(attempt) {}

  // Uniform in 0 .. bound - 1; `slot` numbers the draws of an exercise.
  // REQUIRES: slot < 256, bound >= 1
  int64_t Below(int64_t bound, uint64_t slot) const;

 private:
  const CounterRandom& random_;
  uint64_t index_;
  uint64_t attempt_;
};

class SyntheticTask {
 public:
  virtual ~SyntheticTask() = default;

  // A pure function of its arguments.
  Exercise At(Purpose purpose, uint64_t seed, uint64_t index) const;

  virtual std::string_view name() const = 0;
  virtual VerifierMode verifier() const { return VerifierMode::kGsm8k; }
  // What a model says to solve it, turn by turn, to be imitated: `worked_share` of them
  // work it out. `u`, uniform in [0, 1), chooses among the ways.
  virtual std::vector<std::string> Demonstration(const Exercise& exercise, double worked_share,
                                                 double u) const {
    return {u < worked_share ? exercise.Worked() : exercise.Bare()};
  }

  // What two exercises of one evaluation set must not share.
  virtual const std::string& Identity(const Exercise& exercise) const { return exercise.key; }

  // Whether every kind has exercises on both sides of the split.
  Status CheckSplit() const;

 protected:
  virtual int64_t num_kinds() const = 0;
  // The kind at `u`, uniform in [0, 1).
  virtual int64_t KindAt(double u) const = 0;
  virtual Exercise Draw(int64_t kind, const ExerciseDraw& draw) const = 0;
  // The kind in words, for errors: "lists of 2 numbers".
  virtual std::string Describe(int64_t kind) const = 0;
};

// Generated tasks; the top of each source says what it asks. REQUIRES: options.Validate().ok()
std::unique_ptr<const SyntheticTask> MakeArithmetic(const TaskOptions& options);
std::unique_ptr<const SyntheticTask> MakeListSum(const TaskOptions& options);
std::unique_ptr<const SyntheticTask> MakeProduct(const TaskOptions& options);

// The generated task that the options name, its split checked.
// REQUIRES: options.Validate().ok(), kind is not dataset
Result<std::shared_ptr<const SyntheticTask>> MakeSyntheticTask(const TaskOptions& options);

}  // namespace pace

#endif  // PACE_TASK_SYNTHETIC_TASK_H_
