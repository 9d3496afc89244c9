#include "task/list_sum.h"

#include <algorithm>
#include <cmath>

namespace pace {

ListSum::ListSum(const TaskOptions& options)
    : min_numbers_(options.min_numbers),
      modulus_(options.modulus),
      width_(Concat(options.modulus - 1).size()) {
  double total = 0;
  for (int64_t kind = 0; kind <= options.max_numbers - options.min_numbers; ++kind) {
    total += std::exp(-static_cast<double>(kind) / options.length_scale);
    cumulative_.push_back(total);
  }
  for (double& share : cumulative_) share /= total;
}

int64_t ListSum::KindAt(double u) const {
  const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
  return std::min<int64_t>(at - cumulative_.begin(), num_kinds() - 1);
}

Exercise ListSum::Draw(int64_t kind, const ExerciseDraw& draw) const {
  const int64_t num_numbers = min_numbers_ + kind;
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

std::string ListSum::Describe(int64_t kind) const {
  return Concat("lists of ", min_numbers_ + kind, " numbers");
}

std::string ListSum::Digits(int64_t number) const {
  const std::string digits = Concat(number);
  return std::string(width_ - digits.size(), '0') + digits;
}

}  // namespace pace
