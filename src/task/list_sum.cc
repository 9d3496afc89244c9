#include "task/list_sum.h"

#include <algorithm>

namespace pace {

ListSum::ListSum(const TaskOptions& options)
    : lengths_(options), modulus_(options.modulus), width_(Concat(options.modulus - 1).size()) {}

Exercise ListSum::Draw(int64_t kind, const ExerciseDraw& draw) const {
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

std::string ListSum::Digits(int64_t number) const {
  const std::string digits = Concat(number);
  return std::string(width_ - digits.size(), '0') + digits;
}

}  // namespace pace
