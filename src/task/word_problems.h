// WordProblems: short stories in English that ask for a number.
//
//   Tom has 3 boxes with 8 marbles in each. He gives 5 of them to Mia. How many marbles
//   does Tom have now?
//
//   worked   3 * 8 = 24
//            24 - 5 = 19
//            #### 19
//
// The number of steps is uniform over min_steps .. max_steps; one step is one
// operation. Numbers of the text are at least 2, they and all results at most
// largest_number; results are whole and at least 1. Stories: word_stories.h.
//
// For models that read English: prompts go through task.prompt_template and the chat
// template as those of a dataset do. Problems that name the same numbers and have the
// same answer have one key, whatever they tell: a held-out problem is not trained on
// in other words. An evaluation set may well hold several of them; there, problems are
// told apart by their text, or those of few and small numbers would be too rare in it.
// Thread-safety: immutable.
#ifndef PACE_TASK_WORD_PROBLEMS_H_
#define PACE_TASK_WORD_PROBLEMS_H_

#include <string>
#include <vector>

#include "task/synthetic_task.h"

namespace pace {

// A problem with what it says in numbers.
struct WordProblem {
  std::string text = {};
  // The numbers as the text names them, one by one.
  std::vector<int64_t> numbers = {};
  // Numbers and operators in postfix order, as in {"3", "8", "*", "5", "-"}.
  // Operators: + - * / (without rest), % (the rest), ~ (a ~ b is b - a).
  std::vector<std::string> formula = {};
  // "3 * 8 = 24\n24 - 5 = 19\n"
  std::string steps = {};
  int64_t answer = 0;
};

class WordProblems final : public SyntheticTask {
 public:
  // REQUIRES: options.Validate().ok()
  explicit WordProblems(const TaskOptions& options)
      : min_steps_(options.min_steps),
        num_kinds_(options.max_steps - options.min_steps + 1),
        largest_(options.largest_number) {}

  std::string_view name() const override { return "word_problems"; }
  const std::string& Identity(const Exercise& exercise) const override { return exercise.prompt; }

  // REQUIRES: num_steps within the options'
  WordProblem Tell(int64_t num_steps, const ExerciseDraw& draw) const;

 protected:
  // A kind is a number of steps.
  int64_t num_kinds() const override { return num_kinds_; }
  int64_t KindAt(double u) const override;
  Exercise Draw(int64_t kind, const ExerciseDraw& draw) const override;
  std::string Describe(int64_t kind) const override;

 private:
  int64_t min_steps_;
  int64_t num_kinds_;
  int64_t largest_;
};

}  // namespace pace

#endif  // PACE_TASK_WORD_PROBLEMS_H_
