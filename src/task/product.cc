// Product: multiply a list of three-digit numbers, modulo a number.
//
// More than a small model can do in its head, and one line of Python:
//
//   prompt    417x883x291 mod 9973
//   call      print(417*883*291%9973)       the tool replies 9462
//   answer    \boxed{9462}
//
// Supervised examples are whole interactions, as a list of what the model says; the
// replies between are the tool's. Some call the tool as one should. Some copy the
// problem into the call, which is no Python, and then correct themselves or give up;
// some answer at once. A model that has seen them knows all ways; reinforcement
// learning finds out which one pays.
//
// The number of numbers follows the law of ListSum.
#include <algorithm>

#include "task/code_interpreter.h"
#include "task/list_lengths.h"
#include "task/synthetic_task.h"

namespace pace {
namespace {

constexpr int64_t kSmallest = 100;
constexpr int64_t kLargest = 999;

std::string PrintCall(std::string_view expression) {
  return Concat(kPrintCallBegin, expression, kPrintCallEnd);
}

class Product final : public SyntheticTask {
 public:
  explicit Product(const TaskOptions& options) : lengths_(options), modulus_(options.modulus) {}

  std::string_view name() const override { return "product"; }
  VerifierMode verifier() const override { return VerifierMode::kRetool; }

  std::vector<std::string> Demonstration(const Exercise& exercise, double worked_share,
                                         double u) const override {
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

 protected:
  int64_t num_kinds() const override { return lengths_.num_kinds(); }
  int64_t KindAt(double u) const override { return lengths_.KindAt(u); }
  std::string Describe(int64_t kind) const override { return lengths_.Describe(kind); }

  Exercise Draw(int64_t kind, const ExerciseDraw& draw) const override {
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

 private:
  ListLengths lengths_;
  int64_t modulus_;
};

}  // namespace

std::unique_ptr<const SyntheticTask> MakeProduct(const TaskOptions& options) {
  return std::make_unique<const Product>(options);
}

}  // namespace pace
