// Settings of what a run learns and is measured on: the task, and how its
// problems become prompts. Fields() documents each.
#ifndef PACE_CONFIG_TASK_OPTIONS_H_
#define PACE_CONFIG_TASK_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

enum class TaskKind { kListSum, kArithmetic, kProduct, kWordProblems, kDataset };

// Generated tasks need no file and never repeat by design; a dataset is gone
// through epoch by epoch, each in an order of its own.
struct TaskOptions {
  TaskKind kind = TaskKind::kListSum;

  int64_t min_numbers = 2;
  int64_t max_numbers = 18;
  double length_scale = 8;
  std::optional<double> train_length_scale;
  int64_t modulus = 100;

  std::string operations = "+-*";
  int64_t min_digits = 1;
  int64_t max_digits = 4;

  int64_t min_steps = 1;
  int64_t max_steps = 3;
  int64_t largest_number = 100;

  double worked_share = 0.3;
  double column_share = 0;

  int64_t held_out_problems = 1000;
  int64_t held_out_seed = 1;

  std::string file;
  std::vector<std::string> sources;
  std::string python = "python3";
  std::string prompt_key;
  std::string answer_key;
  std::string prompt_template = "{problem}";
  std::string verifier = "auto";

  std::vector<std::string> benchmarks;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

// One of task.sources.
struct DataSource {
  std::string file;
  double weight = 1;
};
Result<DataSource> DataSourceOf(std::string_view source);

enum class ChatUse { kAuto, kNever };
enum class Thinking { kAuto, kOn, kOff };
enum class LongPrompts { kRefuse, kSkip };

// How a problem becomes the tokens that a response continues.
struct PromptOptions {
  ChatUse chat = ChatUse::kAuto;
  std::string system = {};
  Thinking thinking = Thinking::kAuto;
  std::vector<std::string> template_variables = {};

  int64_t max_tokens = 2048;
  LongPrompts too_long = LongPrompts::kRefuse;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

}  // namespace pace

#endif  // PACE_CONFIG_TASK_OPTIONS_H_
