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
// Where task.column_share is above 0, a worked solution may also add columns in
// writing, from the right: the units of every step, or the units and the tens,
// and so on up to all but the leftmost. A column's sum has two digits, its carry
// first:
//
//   prompt          347+258=
//   worked          347,605#### 605
//   units           347+8=15,605#### 605
//   units and tens  347+8=15+5=10,605#### 605
//
// Every column makes the next partial sum easier and the solution longer. The
// choice to add a column appears only after the column before it, so a policy
// finds the later forms only once it prefers the earlier ones.
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
      : lengths_(options),
        modulus_(options.modulus),
        width_(Concat(options.modulus - 1).size()),
        column_share_(options.column_share) {}

  std::string_view name() const override { return "list_sum"; }

  std::vector<std::string> Demonstration(const Exercise& exercise, double worked_share,
                                         double u) const override {
    if (u >= worked_share) return {exercise.Bare()};
    // Where among the worked ones it lies, then among those with one column, two, ...
    double rest = u / worked_share;
    size_t num_columns = 0;
    while (num_columns + 1 < width_ && rest < column_share_) {
      rest /= column_share_;
      ++num_columns;
    }
    return {WithColumns(exercise, num_columns)};
  }

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
  // The worked solution that adds the rightmost `num_columns` columns of every step in writing.
  // REQUIRES: num_columns == 0 or modulus_ is a power of ten
  std::string WithColumns(const Exercise& exercise, size_t num_columns) const {
    if (num_columns == 0) return exercise.Worked();
    std::string solution;
    std::string sum;  // of the numbers so far
    for (size_t at = 0; at < exercise.steps.size(); at += width_ + 1) {
      // Numbers and partial sums have one width, so they stand at the same distances.
      if (at > 0) solution += Columns(sum, exercise.prompt.substr(at, width_), num_columns) + ',';
      sum = exercise.steps.substr(at, width_);
      solution += sum;
    }
    return solution + exercise.Bare();
  }

  // The rightmost columns of left + right.
  std::string Columns(const std::string& left, const std::string& right, size_t num_columns) const {
    std::string columns;
    int carry = 0;
    for (size_t place = width_; place-- > width_ - num_columns;) {
      const int sum = (left[place] - '0') + (right[place] - '0') + carry;
      carry = sum / 10;
      columns += Concat("+", right[place], "=", carry, sum % 10);
    }
    return columns;
  }

  std::string Digits(int64_t number) const {
    const std::string digits = Concat(number);
    return std::string(width_ - digits.size(), '0') + digits;
  }

  ListLengths lengths_;
  int64_t modulus_;
  size_t width_;
  double column_share_;
};

}  // namespace

std::unique_ptr<const SyntheticTask> MakeListSum(const TaskOptions& options) {
  return std::make_unique<const ListSum>(options);
}

}  // namespace pace
