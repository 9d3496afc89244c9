#include "task/synthetic_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <unordered_set>

#include "task/splits.h"
#include "task/synthetic_source.h"

namespace pace {
namespace {

TaskOptions ListSumOptions(int64_t modulus = 100, int64_t max_numbers = 18) {
  TaskOptions options;
  options.modulus = modulus;
  options.max_numbers = max_numbers;
  return options;
}

TaskOptions ArithmeticOptions(const std::string& operations = "+-*", int64_t max_digits = 4) {
  TaskOptions options;
  options.kind = TaskKind::kArithmetic;
  options.operations = operations;
  options.max_digits = max_digits;
  return options;
}

std::shared_ptr<const SyntheticTask> Make(const TaskOptions& options) {
  EXPECT_TRUE(options.Validate().ok());
  const auto task = MakeSyntheticTask(options);
  EXPECT_TRUE(task.ok()) << task.status().message();
  return *task;
}

constexpr Purpose kPurposes[] = {Purpose::kTraining, Purpose::kSupervised, Purpose::kHeldOut};

// The value of "12", "1+2+3", "7-4" or "3*4", naively.
int64_t Evaluate(std::string_view expression) {
  int64_t total = 0;
  char operation = '+';
  for (size_t at = 0; at < expression.size();) {
    int64_t number = 0;
    const char* const begin = expression.data() + at;
    const char* const stop =
        std::from_chars(begin, expression.data() + expression.size(), number).ptr;
    EXPECT_NE(begin, stop) << expression;
    if (begin == stop) return -1;
    total = operation == '+' ? total + number : operation == '-' ? total - number : total * number;
    at += static_cast<size_t>(stop - begin);
    if (at < expression.size()) operation = expression[at++];
  }
  return total;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool IsCorrect(const std::string& response, const Exercise& exercise) {
  return Verify(VerifierMode::kGsm8k, response, exercise.answer).correct;
}

// Both forms verify; no change of one digit of the answer does, nor does a
// response cut off inside the answer or before it.
void ExpectVerified(const Exercise& exercise) {
  for (const std::string& solution : {exercise.Worked(), exercise.Bare()}) {
    ASSERT_TRUE(IsCorrect(solution, exercise)) << solution;
    const size_t answer = solution.size() - exercise.answer.size();
    for (size_t i = answer; i < solution.size(); ++i) {
      std::string corrupted = solution;
      corrupted[i] = corrupted[i] == '9' ? '0' : static_cast<char>(corrupted[i] + 1);
      ASSERT_FALSE(IsCorrect(corrupted, exercise)) << corrupted;
    }
    ASSERT_FALSE(IsCorrect(solution + '1', exercise)) << solution;
    if (exercise.answer.size() > 1 && exercise.answer[0] != '0') {
      ASSERT_FALSE(IsCorrect(solution.substr(0, solution.size() - 1), exercise)) << solution;
    }
  }
  ASSERT_FALSE(IsCorrect(std::string(kAnswerMarker), exercise));
  ASSERT_FALSE(IsCorrect("", exercise));
}

TEST(ListSumTest, ProblemsLookAsTheHeaderSays) {
  const auto task = Make(ListSumOptions());
  for (uint64_t index = 0; index < 300; ++index) {
    const Exercise exercise = task->At(Purpose::kTraining, 1, index);
    ASSERT_EQ(exercise.prompt.back(), '=');
    const auto numbers = Split(exercise.prompt.substr(0, exercise.prompt.size() - 1), '+');
    ASSERT_GE(numbers.size(), 2U);
    ASSERT_LE(numbers.size(), 18U);
    const auto steps = Split(exercise.steps, ',');
    ASSERT_EQ(steps.size(), numbers.size());
    int64_t sum = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_EQ(numbers[i].size(), 2U);
      ASSERT_EQ(steps[i].size(), 2U);
      sum += std::stoll(numbers[i]);
      ASSERT_EQ(std::stoll(steps[i]), sum % 100) << exercise.prompt << exercise.steps;
    }
    ASSERT_EQ(exercise.answer, steps.back());
    // Tokens: characters, the marker as one, the end.
    ASSERT_EQ(exercise.Worked().size() - kAnswerMarker.size() + 2, 3 * numbers.size() + 3);
    ExpectVerified(exercise);
  }
}

TEST(ListSumTest, LengthsFollowTheExponentialLaw) {
  TaskOptions options = ListSumOptions(100, 10);
  options.length_scale = 3;
  const auto task = Make(options);
  constexpr int64_t kDraws = 20000;
  for (const Purpose purpose : kPurposes) {
    std::map<size_t, int64_t> counts;
    for (uint64_t index = 0; index < kDraws; ++index) {
      ++counts[(task->At(purpose, 4, index).prompt.size()) / 3];
    }
    double total = 0;
    for (int n = 2; n <= 10; ++n) total += std::exp(-n / 3.0);
    ASSERT_EQ(counts.size(), 9U);
    for (int n = 2; n <= 10; ++n) {
      const double expected = kDraws * std::exp(-n / 3.0) / total;
      EXPECT_NEAR(static_cast<double>(counts[static_cast<size_t>(n)]), expected,
                  6 * std::sqrt(expected))
          << n;
    }
  }
}

TEST(ListSumTest, OtherModuliHaveTheirOwnWidth) {
  const auto task = Make(ListSumOptions(1000, 3));
  const Exercise exercise = task->At(Purpose::kTraining, 1, 0);
  EXPECT_EQ(exercise.answer.size(), 3U);
  ExpectVerified(exercise);
}

// The columns of a solution and the partial sums between them, computed from the prompt alone.
std::string SolutionWithColumns(const Exercise& exercise, size_t num_columns) {
  const auto numbers = Split(exercise.prompt.substr(0, exercise.prompt.size() - 1), '+');
  const size_t width = numbers[0].size();
  int64_t modulus = 1;
  for (size_t i = 0; i < width; ++i) modulus *= 10;
  const auto padded = [](int64_t number, size_t digits) {
    const std::string text = std::to_string(number);
    return std::string(digits - text.size(), '0') + text;
  };
  std::string solution = numbers[0];
  int64_t sum = std::stoll(numbers[0]);
  for (size_t i = 1; i < numbers.size(); ++i) {
    const int64_t number = std::stoll(numbers[i]);
    int64_t below = 1;  // the value of one in this column
    for (size_t column = 0; column < num_columns; ++column, below *= 10) {
      const int64_t carry = (sum % below + number % below) / below;
      const int64_t digit = number / below % 10;
      solution += "+" + std::to_string(digit) + "=" + padded(sum / below % 10 + digit + carry, 2);
    }
    sum = (sum + number) % modulus;
    solution += "," + padded(sum, width);
  }
  return solution + exercise.Bare();
}

TEST(ListSumTest, ColumnsAreWrittenAsTheHeaderSays) {
  const Exercise exercise{.prompt = "347+258=", .answer = "605", .steps = "347,605", .key = {}};
  TaskOptions options = ListSumOptions(1000, 2);
  options.column_share = 0.5;
  const auto task = Make(options);
  const std::string expected[] = {"347+8=15+5=10,605#### 605", "347+8=15,605#### 605",
                                  "347,605#### 605", "#### 605"};
  const double u[] = {0.1, 0.3, 0.6, 0.9};
  for (size_t i = 0; i < std::size(u); ++i) {
    EXPECT_EQ(task->Demonstration(exercise, 0.8, u[i]), std::vector{expected[i]}) << u[i];
  }
}

TEST(ListSumTest, EachColumnIsAddedInItsShareOfTheSolutions) {
  TaskOptions options = ListSumOptions(1000, 5);
  options.column_share = 0.4;
  const auto task = Make(options);
  const SftSource source(task, 3, 0.5);
  constexpr int64_t kExamples = 6000;
  std::map<std::string_view, int64_t> counts;
  for (int64_t index = 0; index < kExamples; ++index) {
    const Exercise exercise = task->At(Purpose::kSupervised, 3, static_cast<uint64_t>(index));
    const std::string solution = source.At(index).turns.at(0);
    ASSERT_TRUE(IsCorrect(solution, exercise)) << solution;
    if (solution == exercise.Bare()) {
      ++counts["bare"];
    } else if (solution == exercise.Worked()) {
      ++counts["worked"];
    } else if (solution == SolutionWithColumns(exercise, 1)) {
      ++counts["units"];
    } else {
      ASSERT_EQ(solution, SolutionWithColumns(exercise, 2)) << exercise.prompt;
      ++counts["tens"];
    }
  }
  const std::pair<std::string_view, double> expected[] = {
      {"bare", 0.5}, {"worked", 0.3}, {"units", 0.12}, {"tens", 0.08}};
  for (const auto& [form, share] : expected) {
    EXPECT_NEAR(static_cast<double>(counts[form]) / kExamples, share,
                6 * std::sqrt(share * (1 - share) / kExamples))
        << form;
  }
}

// The columns are a matter of the examples: problems and their split do not depend on them.
TEST(ListSumTest, ColumnsDoNotChangeTheProblems) {
  TaskOptions options = ListSumOptions(1000, 5);
  const auto plain = Make(options);
  options.column_share = 1;
  const auto columns = Make(options);
  for (const Purpose purpose : kPurposes) {
    for (uint64_t index = 0; index < 200; ++index) {
      const Exercise exercise = columns->At(purpose, 1, index);
      ASSERT_EQ(exercise.prompt, plain->At(purpose, 1, index).prompt);
      ASSERT_EQ(columns->Demonstration(exercise, 1, 0.999).at(0), SolutionWithColumns(exercise, 2));
      ASSERT_EQ(plain->Demonstration(exercise, 1, 0).at(0), exercise.Worked());
    }
  }
}

TEST(ArithmeticTest, EveryStepAndAnswerIsRight) {
  const auto task = Make(ArithmeticOptions("+-*", 5));
  for (uint64_t index = 0; index < 2000; ++index) {
    const Exercise exercise = task->At(Purpose::kSupervised, 2, index);
    const std::string question = exercise.prompt.substr(0, exercise.prompt.size() - 1);
    ASSERT_EQ(Evaluate(question), std::stoll(exercise.answer)) << exercise.prompt;
    for (const std::string& step : Split(exercise.steps, ',')) {
      const auto sides = Split(step, '=');
      ASSERT_EQ(sides.size(), 2U) << exercise.steps;
      ASSERT_EQ(Evaluate(sides[0]), std::stoll(sides[1])) << exercise.steps;
    }
    ExpectVerified(exercise);
  }
}

// The steps must lead to the answer, not only be true: the last digit of each
// column's result, read from the left, is the answer of a sum or difference.
TEST(ArithmeticTest, StepsLeadToTheAnswer) {
  const auto task = Make(ArithmeticOptions("+-*", 6));
  for (uint64_t index = 0; index < 2000; ++index) {
    const Exercise exercise = task->At(Purpose::kTraining, 2, index);
    const auto steps = Split(exercise.steps, ',');
    if (exercise.prompt.find('*') != std::string::npos) {
      ASSERT_EQ(Split(steps.back(), '=')[1], exercise.answer);
      continue;
    }
    std::string assembled;
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string result = Split(steps[i], '=')[1];
      assembled.insert(0, i + 1 < steps.size() ? result.substr(result.size() - 1) : result);
    }
    ASSERT_EQ(std::stoll(assembled), std::stoll(exercise.answer)) << exercise.steps;
  }
}

TEST(ArithmeticTest, StepsAreWrittenAsTheHeaderSays) {
  const std::map<std::string, std::string> examples = {
      {"95+8=", "5+8=13,9+0+1=10#### 103"},
      {"91-8=", "11-8=3,8-0=8#### 83"},
      {"12*34=", "12*4=48,12*30=360,48+360=408#### 408"},
  };
  std::set<std::string> found;
  for (const char* operation : {"+", "-", "*"}) {
    TaskOptions options = ArithmeticOptions(operation, 2);
    if (options.operations == "*") options.min_digits = 2;
    const auto task = Make(options);
    for (uint64_t index = 0; index < 50000; ++index) {
      const Purpose purpose = index % 4 == 0 ? Purpose::kHeldOut : Purpose::kTraining;
      const Exercise exercise = task->At(purpose, 1, index);
      const auto example = examples.find(exercise.prompt);
      if (example == examples.end()) continue;
      found.insert(exercise.prompt);
      ASSERT_EQ(exercise.Worked(), example->second);
    }
  }
  EXPECT_EQ(found.size(), examples.size());
}

TEST(SyntheticTaskTest, AtIsAPureFunctionOfItsArguments) {
  for (const TaskOptions& options : {ListSumOptions(), ArithmeticOptions()}) {
    const auto task = Make(options);
    const auto again = Make(options);
    std::set<std::string> prompts;
    for (const Purpose purpose : kPurposes) {
      for (const uint64_t seed : {1U, 2U}) {
        for (uint64_t index = 500; index-- > 0;) {
          const Exercise exercise = task->At(purpose, seed, index);
          ASSERT_EQ(exercise.prompt, again->At(purpose, seed, index).prompt);
          prompts.insert(exercise.prompt);
        }
      }
    }
    // Purposes, seeds and indices are streams of their own; only short problems
    // meet by chance.
    EXPECT_GT(prompts.size(), 2000U);
  }
}

// What is held out is never drawn for training, whatever the seeds; small
// spaces, so that every problem is drawn many times.
TEST(SyntheticTaskTest, HeldOutProblemsAreNeverDrawnForTraining) {
  for (const TaskOptions& options : {ListSumOptions(10, 3), ArithmeticOptions("+-*", 2)}) {
    const auto task = Make(options);
    std::unordered_set<std::string> training, held_out;
    for (uint64_t index = 0; index < 250000; ++index) {
      training.insert(task->At(Purpose::kTraining, index % 5, index).key);
      training.insert(task->At(Purpose::kSupervised, index % 7, index).key);
    }
    for (uint64_t index = 0; index < 20000; ++index) {
      held_out.insert(task->At(Purpose::kHeldOut, index % 3, index).key);
    }
    for (const std::string& key : held_out) ASSERT_FALSE(training.contains(key)) << key;
    const double share = static_cast<double>(held_out.size()) /
                         static_cast<double>(training.size() + held_out.size());
    EXPECT_NEAR(share, 0.125, 0.06);
  }
}

TEST(SyntheticTaskTest, TheOrderOfTermsDoesNotLeakHeldOutProblems) {
  const auto task = Make(ListSumOptions(100, 2));
  std::set<std::string> keys;
  for (uint64_t index = 0; index < 200; ++index) {
    const Exercise exercise = task->At(Purpose::kHeldOut, 1, index);
    const std::string left = exercise.prompt.substr(0, 2);
    const std::string right = exercise.prompt.substr(3, 2);
    EXPECT_EQ(exercise.key, std::min(left, right) + "+" + std::max(left, right) + "+");
  }
}

// The rule must never change: base models were trained without these problems.
TEST(SyntheticTaskTest, TheSplitIsPinned) {
  std::string sides;
  for (int i = 0; i < 64; ++i) sides += IsHeldOut(std::to_string(i)) ? '1' : '0';
  EXPECT_EQ(sides, "0000000000000010010000000000000000000100000100010101000000000000");
  EXPECT_EQ(Make(ListSumOptions())->At(Purpose::kTraining, 1, 0).prompt,
            "48+72+40+02+22+61+07+32+75+53+72+02+63+28+44=");
}

TEST(SyntheticTaskTest, ASpaceTooSmallToSplitIsRefused) {
  const auto task = MakeSyntheticTask(ListSumOptions(2, 2));
  ASSERT_FALSE(task.ok());
  EXPECT_EQ(task.status().message(),
            "task.kind = list_sum: too few lists of 2 numbers to hold some of them out (allow "
            "larger numbers)");
}

TEST(SyntheticSourceTest, ProblemsCarryTheirVerifier) {
  const SyntheticSource source(Make(ListSumOptions()), 7);
  const Problem problem = source.At(PromptIndex(12));
  EXPECT_EQ(problem.id, "list_sum/12");
  EXPECT_EQ(problem.verifier, VerifierMode::kGsm8k);
  EXPECT_EQ(problem, source.At(PromptIndex(12)));
  EXPECT_FALSE(source.epoch_size().has_value());
}

TEST(SftSourceTest, MixesWorkedAndBareSolutionsByTheirShare) {
  const auto task = Make(ListSumOptions());
  const SftSource source(task, 3, 0.3);
  int64_t worked = 0;
  constexpr int64_t kExamples = 5000;
  for (int64_t index = 0; index < kExamples; ++index) {
    const SftExample example = source.At(index);
    const Exercise exercise = task->At(Purpose::kSupervised, 3, static_cast<uint64_t>(index));
    ASSERT_EQ(example.prompt, Prompt(exercise.prompt));
    const bool is_worked = example.turns.at(0) == exercise.Worked();
    ASSERT_TRUE(is_worked || example.turns.at(0) == exercise.Bare());
    worked += is_worked ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(worked) / kExamples, 0.3, 6 * std::sqrt(0.21 / kExamples));
  EXPECT_EQ(source.At(5), SftSource(task, 3, 0.3).At(5));
  EXPECT_EQ(SftSource(task, 3, 0).At(5).turns[0].find(kAnswerMarker), 0U);
}

}  // namespace
}  // namespace pace
