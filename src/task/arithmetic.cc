// Arithmetic: add, subtract or multiply two whole numbers.
//
// Worked solutions go column by column from the right, with the carry as a
// third term or the borrowed ten in front; products go digit by digit of the
// second number, each partial product then added:
//
//   95+8=    5+8=13,9+0+1=10#### 103
//   91-8=    11-8=3,8-0=8#### 83
//   12*34=   12*4=48,12*30=360,48+360=408#### 408
//
// The operation is uniform over those allowed, each operand's number of digits
// over min_digits .. max_digits, the operand over the numbers with that many
// digits. A difference has the larger number first, so answers are never
// negative.
#include <algorithm>
#include <utility>

#include "task/synthetic_task.h"

namespace pace {
namespace {

int64_t PowerOfTen(int64_t exponent) {
  int64_t power = 1;
  for (int64_t i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// A number with exactly so many digits; 0 has one.
int64_t DrawNumber(int64_t num_digits, const ExerciseDraw& draw, uint64_t slot) {
  const int64_t smallest = num_digits == 1 ? 0 : PowerOfTen(num_digits - 1);
  return smallest + draw.Below(PowerOfTen(num_digits) - smallest, slot);
}

void AppendStep(std::string& steps, const std::string& step) {
  if (!steps.empty()) steps += ',';
  steps += step;
}

std::string AdditionSteps(int64_t left, int64_t right) {
  std::string steps;
  int64_t carry = 0;
  do {
    const int64_t sum = left % 10 + right % 10 + carry;
    AppendStep(steps, Concat(left % 10, "+", right % 10, carry > 0 ? "+1" : "", "=", sum));
    carry = sum / 10;
    left /= 10;
    right /= 10;
  } while (left > 0 || right > 0);
  return steps;
}

// REQUIRES: left >= right
std::string SubtractionSteps(int64_t left, int64_t right) {
  std::string steps;
  int64_t borrowed = 0;
  do {
    int64_t upper = left % 10 - borrowed;
    borrowed = upper < right % 10 ? 1 : 0;
    upper += 10 * borrowed;
    AppendStep(steps, Concat(upper, "-", right % 10, "=", upper - right % 10));
    left /= 10;
    right /= 10;
  } while (left > 0 || right > 0);
  return steps;
}

std::string MultiplicationSteps(int64_t left, int64_t right) {
  std::string steps;
  int64_t total = 0;
  for (int64_t place = 1; place == 1 || place <= right; place *= 10) {
    const int64_t factor = right / place % 10 * place;
    const int64_t product = left * factor;
    AppendStep(steps, Concat(left, "*", factor, "=", product));
    if (place > 1) AppendStep(steps, Concat(total, "+", product, "=", total + product));
    total += product;
  }
  return steps;
}

class Arithmetic final : public SyntheticTask {
 public:
  explicit Arithmetic(const TaskOptions& options)
      : operations_(options.operations),
        min_digits_(options.min_digits),
        num_digits_(options.max_digits - options.min_digits + 1) {}

  std::string_view name() const override { return "arithmetic"; }

 protected:
  int64_t num_kinds() const override {
    return static_cast<int64_t>(operations_.size()) * num_digits_ * num_digits_;
  }

  int64_t KindAt(double u) const override {
    const auto at = static_cast<int64_t>(u * static_cast<double>(num_kinds()));
    return std::min(at, num_kinds() - 1);
  }

  Exercise Draw(int64_t kind, const ExerciseDraw& draw) const override {
    const auto [operation, left_digits, right_digits] = Unpack(kind);
    int64_t left = DrawNumber(left_digits, draw, 0);
    int64_t right = DrawNumber(right_digits, draw, 1);
    if (operation == '-' && left < right) std::swap(left, right);
    Exercise exercise;
    exercise.prompt = Concat(left, operation, right, "=");
    if (operation == '+') {
      exercise.answer = Concat(left + right);
      exercise.steps = AdditionSteps(left, right);
    } else if (operation == '-') {
      exercise.answer = Concat(left - right);
      exercise.steps = SubtractionSteps(left, right);
    } else {
      exercise.answer = Concat(left * right);
      exercise.steps = MultiplicationSteps(left, right);
    }
    exercise.key = Concat(std::max(left, right), operation, std::min(left, right));
    return exercise;
  }

  std::string Describe(int64_t kind) const override {
    const auto [operation, left_digits, right_digits] = Unpack(kind);
    return Concat("problems '", operation, "' of ", left_digits, " and ", right_digits, " digits");
  }

 private:
  // A kind is an operation with the digits of both operands.
  struct Kind {
    char operation;
    int64_t left_digits;
    int64_t right_digits;
  };
  Kind Unpack(int64_t kind) const {
    return {.operation = operations_[static_cast<size_t>(kind / (num_digits_ * num_digits_))],
            .left_digits = min_digits_ + kind / num_digits_ % num_digits_,
            .right_digits = min_digits_ + kind % num_digits_};
  }

  std::string operations_;
  int64_t min_digits_;
  int64_t num_digits_;  // how many numbers of digits there are
};

}  // namespace

std::unique_ptr<const SyntheticTask> MakeArithmetic(const TaskOptions& options) {
  return std::make_unique<const Arithmetic>(options);
}

}  // namespace pace
