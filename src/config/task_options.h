// Settings of what a run learns and is measured on: the task, and how its
// problems become prompts.
#ifndef PACE_CONFIG_TASK_OPTIONS_H_
#define PACE_CONFIG_TASK_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

enum class TaskKind { kListSum, kArithmetic, kProduct, kWordProblems, kDataset };

// Generated tasks need no file and never repeat by design; a dataset is gone
// through epoch by epoch, each in an order of its own.
struct TaskOptions {
  TaskKind kind = TaskKind::kListSum;

  // list_sum, product: P(n numbers) falls as exp(-n / length_scale) between the bounds.
  // Larger: more long lists, which are the hard ones.
  int64_t min_numbers = 2;
  int64_t max_numbers = 18;
  double length_scale = 8;
  // Of the problems trained on alone: a diet of other lengths, judged on the same
  // held-out problems. auto = length_scale.
  std::optional<double> train_length_scale;
  int64_t modulus = 100;

  // arithmetic: any of + - *; each operand's number of digits is uniform.
  std::string operations = "+-*";
  int64_t min_digits = 1;
  int64_t max_digits = 4;

  // word_problems: operations that a problem takes, uniform between the bounds, and the
  // largest number of a problem, its results included.
  int64_t min_steps = 1;
  int64_t max_steps = 3;
  int64_t largest_number = 100;

  // Generated tasks, supervised data: share of examples that show the steps (product:
  // that call the tool as one should); the others give the bare answer (product: or
  // make a call that fails first).
  double worked_share = 0.3;

  // Generated tasks: the evaluation set `held_out`. Its seed is not the run's,
  // so that runs with different seeds are measured on the same problems.
  int64_t held_out_problems = 1000;
  int64_t held_out_seed = 1;

  // dataset: JSON lines of {problem, answer}, of {prompt, answer}, of {question,
  // answer}, or in verl's schema.
  std::string file;
  // Keys of prompt and answer in dataset and benchmark files, of prompt and
  // completion in supervised data; "a.b" is key b of object a. Empty: the known ones.
  std::string prompt_key;
  std::string answer_key;
  // The prompt of a problem; {problem} stands for its text. Rows that hold messages are
  // used as they are. Benchmark files likewise.
  std::string prompt_template = "{problem}";
  // Verifier mode of a dataset and of benchmark files; auto = by each row's
  // data_source as verl has it, dapo-int for rows without one.
  // Generated tasks bring their own.
  std::string verifier = "auto";

  // What evaluation runs on: `held_out`, or files, each with its own verifier
  // mode where one is given as in "math500.jsonl@math". Empty: held_out for a
  // generated task, nothing for a dataset.
  std::vector<std::string> benchmarks;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

enum class ChatUse { kAuto, kNever };
enum class Thinking { kAuto, kOn, kOff };
enum class LongPrompts { kRefuse, kSkip };

// How a problem becomes the tokens that a response continues.
struct PromptOptions {
  // auto: the model's chat template where it has one; a problem's text is then
  // one user message. never: the text as it stands.
  ChatUse chat = ChatUse::kAuto;
  // In front of conversations that do not begin with a system message.
  std::string system = {};
  // The template's variable enable_thinking; auto leaves it undefined.
  Thinking thinking = Thinking::kAuto;
  // Further variables, "name=value"; the value is JSON, else text.
  std::vector<std::string> template_variables = {};

  int64_t max_tokens = 2048;
  // A longer prompt: refuse = the run does not start; skip = its problem is
  // left out, and how many were is reported.
  LongPrompts too_long = LongPrompts::kRefuse;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

}  // namespace pace

#endif  // PACE_CONFIG_TASK_OPTIONS_H_
