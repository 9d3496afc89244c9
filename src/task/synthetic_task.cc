#include "task/synthetic_task.h"

#include "core/check.h"
#include "task/splits.h"
#include "task/word_problems.h"

namespace pace {
namespace {

// Draws of one exercise use the low bits of the counter, attempts the rest.
constexpr uint64_t kSlotBits = 8;
constexpr uint64_t kKindSlot = 255;
// A kind whose sides both showed within kNumProbes draws has a share of at least
// one in some thousands on each, since small kinds have few problems and large
// ones are split evenly: missing a side kMaxAttempts times does not happen.
constexpr uint64_t kNumProbes = 4096;
constexpr uint64_t kMaxAttempts = uint64_t{1} << 20;

TaskStream StreamOf(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTraining:
      return TaskStream::kTraining;
    case Purpose::kSupervised:
      return TaskStream::kSupervised;
    case Purpose::kHeldOut:
      break;
  }
  return TaskStream::kHeldOut;
}

CounterRandom RandomOf(uint64_t seed, TaskStream stream) {
  return {seed, static_cast<uint32_t>(stream)};
}

}  // namespace

std::string Exercise::Worked() const {
  return steps + Bare();
}

std::string Exercise::Bare() const {
  return Concat(kAnswerMarker, answer);
}

int64_t ExerciseDraw::Below(int64_t bound, uint64_t slot) const {
  PACE_CHECK(bound >= 1 && slot < kKindSlot, "bound ", bound, ", slot ", slot);
  const uint64_t bits = random_.Bits(index_, attempt_ << kSlotBits | slot);
  // The remainder favours small numbers by less than bound / 2^64.
  return static_cast<int64_t>(bits % static_cast<uint64_t>(bound));
}

Exercise SyntheticTask::At(Purpose purpose, uint64_t seed, uint64_t index) const {
  const CounterRandom random = RandomOf(seed, StreamOf(purpose));
  const int64_t kind = KindAt(random.Uniform(index, kKindSlot));
  const bool held_out = purpose == Purpose::kHeldOut;
  for (uint64_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Exercise exercise = Draw(kind, ExerciseDraw(random, index, attempt));
    if (IsHeldOut(exercise.key) == held_out) return exercise;
  }
  PACE_CHECK(false, name(), ": no exercise on this side among ", Describe(kind));
  return {};
}

Status SyntheticTask::CheckSplit() const {
  const CounterRandom random = RandomOf(0, TaskStream::kProbe);
  for (int64_t kind = 0; kind < num_kinds(); ++kind) {
    bool seen[2] = {false, false};
    for (uint64_t probe = 0; probe < kNumProbes && !(seen[0] && seen[1]); ++probe) {
      const ExerciseDraw draw(random, static_cast<uint64_t>(kind), probe);
      seen[IsHeldOut(Draw(kind, draw).key)] = true;
    }
    if (!seen[0] || !seen[1]) {
      return InvalidArgument("task.kind = ", name(), ": too few ", Describe(kind),
                             " to hold some of them out (allow larger numbers)");
    }
  }
  return Status::Ok();
}

Result<std::shared_ptr<const SyntheticTask>> MakeSyntheticTask(const TaskOptions& options) {
  PACE_CHECK(options.kind != TaskKind::kDataset, "a dataset is not generated");
  std::shared_ptr<const SyntheticTask> task;
  if (options.kind == TaskKind::kListSum) {
    task = MakeListSum(options);
  } else if (options.kind == TaskKind::kProduct) {
    task = MakeProduct(options);
  } else if (options.kind == TaskKind::kWordProblems) {
    task = std::make_shared<const WordProblems>(options);
  } else {
    task = MakeArithmetic(options);
  }
  PACE_RETURN_IF_ERROR(task->CheckSplit());
  return task;
}

}  // namespace pace
