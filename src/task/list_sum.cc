// ListSum: add a list of numbers modulo a number.
//
// The prompt is the list, every number with as many digits as modulus - 1 has.
// The worked solution writes the sum of the first one, two, ... numbers, so
// that each step needs the step before and one number at a fixed distance:
//
//   prompt  12+07+93=
//   worked  12,19,12#### 12
//   bare    #### 12
//   answer  12
//
// In characters, the marker being one token and the end another, a worked
// solution of n two-digit numbers takes 3 n + 3 tokens and a bare one 4.
// list_lengths.h says how many numbers there are.
//
// Numbers are uniform in 0 .. modulus - 1, and so is the answer: whatever n,
// guessing succeeds once in `modulus` times.
#include <algorithm>

#include "task/list_lengths.h"
#include "task/synthetic_task.h"

namespace pace {
namespace {

class ListSum final : public SyntheticTask {
 public:
  explicit ListSum(const TaskOptions& options)
      : lengths_(options), modulus_(options.modulus), width_(Concat(options.modulus - 1).size()) {}

  std::string_view name() const override { return "list_sum"; }

 protected:
  int64_t num_kinds() const override { return lengths_.num_kinds(); }
  int64_t KindAt(double u) const override { return lengths_.KindAt(u); }
  std::string Describe(int64_t kind) const override { return lengths_.Describe(kind); }

  Exercise Draw(int64_t kind, const ExerciseDraw& draw) const override {
    const int64_t num_numbers = lengths_.NumbersOf(kind);
    Exercise exercise;
    std::vector<std::string> numbers;
    int64_t sum = 0;
    for (int64_t i = 0; i < num_numbers; ++i) {
      const int64_t number = draw.Below(modulus_, static_cast<uint64_t>(i));
      sum = (sum + number) % modulus_;
      numbers.push_back(Digits(number));
      if (i > 0) {
        exercise.prompt += '+';
        exercise.steps += ',';
      }
      exercise.prompt += numbers.back();
      exercise.steps += Digits(sum);
    }
    exercise.prompt += '=';
    exercise.answer = Digits(sum);
    std::sort(numbers.begin(), numbers.end());
    for (const std::string& number : numbers) exercise.key += number + '+';
    return exercise;
  }

 private:
  std::string Digits(int64_t number) const {
    const std::string digits = Concat(number);
    return std::string(width_ - digits.size(), '0') + digits;
  }

  ListLengths lengths_;
  int64_t modulus_;
  size_t width_;
};

}  // namespace

std::unique_ptr<const SyntheticTask> MakeListSum(const TaskOptions& options) {
  return std::make_unique<const ListSum>(options);
}

}  // namespace pace
