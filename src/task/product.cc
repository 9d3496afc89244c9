#include "task/product.h"

#include <algorithm>

#include "task/code_interpreter.h"

namespace pace {
namespace {

constexpr int64_t kSmallest = 100;
constexpr int64_t kLargest = 999;

std::string PrintCall(std::string_view expression) {
  return Concat(kPrintCallBegin, expression, kPrintCallEnd);
}

}  // namespace

Product::Product(const TaskOptions& options) : lengths_(options), modulus_(options.modulus) {}

Exercise Product::Draw(int64_t kind, const ExerciseDraw& draw) const {
  Exercise exercise;
  std::vector<std::string> numbers;
  int64_t product = 1;
  for (int64_t i = 0; i < lengths_.NumbersOf(kind); ++i) {
    const int64_t number =
        kSmallest + draw.Below(kLargest - kSmallest + 1, static_cast<uint64_t>(i));
    product = product * number % modulus_;
    numbers.push_back(Concat(number));
    exercise.prompt += (i > 0 ? "x" : "") + numbers.back();
    exercise.steps += (i > 0 ? "*" : "") + numbers.back();
  }
  exercise.prompt += Concat(" mod ", modulus_);
  exercise.steps += Concat("%", modulus_);
  exercise.answer = Concat(product);
  std::sort(numbers.begin(), numbers.end());
  for (const std::string& number : numbers) exercise.key += number + 'x';
  return exercise;
}

std::vector<std::string> Product::Demonstration(const Exercise& exercise, double worked_share,
                                                double u) const {
  const std::string answer = Concat("\\boxed{", exercise.answer, "}");
  const std::string call = PrintCall(exercise.steps);
  if (u < worked_share) return {call, answer};
  // Where in the rest it lies.
  const double rest = (u - worked_share) / (1 - worked_share);
  const std::string mistake = PrintCall(exercise.prompt);
  if (rest < 0.25) return {mistake, call, answer};
  if (rest < 0.5) return {mistake, answer};
  return {answer};
}

}  // namespace pace
