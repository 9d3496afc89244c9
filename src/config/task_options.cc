#include "config/task_options.h"

#include <array>
#include <charconv>
#include <string_view>

#include "core/printable.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 5> kKindNames = {"list_sum", "arithmetic", "product",
                                                        "word_problems", "dataset"};
constexpr std::array<std::string_view, 2> kChatNames = {"auto", "never"};
constexpr std::array<std::string_view, 3> kThinkingNames = {"auto", "on", "off"};
constexpr std::array<std::string_view, 2> kLongPromptNames = {"refuse", "skip"};

constexpr double kMinSourceWeight = 1e-3, kMaxSourceWeight = 1e3;

// Whether numbers below it have two or more columns, all of ten digits.
bool HasColumns(int64_t modulus) {
  while (modulus % 10 == 0 && modulus > 100) modulus /= 10;
  return modulus == 100;
}

}  // namespace

std::vector<Field> TaskOptions::Fields() {
  return {
      Field::Enum("kind", kind, kKindNames, "Generated problems, or those of a file."),
      Field::Int("min_numbers", min_numbers, "list_sum, product: fewest numbers of a list.")
          .AtLeast(2)
          .AtMost(200),
      Field::Int("max_numbers", max_numbers, "list_sum, product: most numbers of a list.")
          .AtLeast(2)
          .AtMost(200),
      Field::Real("length_scale", length_scale,
                  "list_sum, product: P(n numbers) falls as exp(-n / length_scale). Larger: more "
                  "long lists, which are the hard ones.")
          .Above(0)
          .AtMost(1e6),
      Field::OptionalReal("train_length_scale", train_length_scale,
                          "list_sum, product: the same for the problems trained on alone, judged "
                          "on the same held-out problems; auto = length_scale.")
          .Above(0)
          .AtMost(1e6),
      Field::Int("modulus", modulus,
                 "list_sum, product: results are below it, and the numbers of a sum.")
          .AtLeast(2)
          .AtMost(1e6),
      Field::Text("operations", operations, "arithmetic: any of + - *."),
      Field::Int("min_digits", min_digits,
                 "arithmetic: fewest digits of an operand; uniform between the bounds.")
          .AtLeast(1)
          .AtMost(9),
      Field::Int("max_digits", max_digits, "arithmetic: most digits of an operand.")
          .AtLeast(1)
          .AtMost(9),
      Field::Int("min_steps", min_steps,
                 "word_problems: fewest operations of a problem; uniform between the bounds.")
          .AtLeast(1)
          .AtMost(3),
      Field::Int("max_steps", max_steps, "word_problems: most operations of a problem.")
          .AtLeast(1)
          .AtMost(3),
      Field::Int("largest_number", largest_number,
                 "word_problems: largest number of a problem, its results included.")
          .AtLeast(20)
          .AtMost(1e6),
      Field::Real(
          "worked_share", worked_share,
          "Supervised data: share of examples that show the steps (product: that call the tool "
          "correctly); the others give the bare answer (product: or make a call that fails first).")
          .AtLeast(0)
          .AtMost(1),
      Field::Real("column_share", column_share,
                  "list_sum, supervised data: share of the worked examples that add the units of "
                  "every step in writing; the same share of those adds the tens, too, and so on. "
                  "Needs a modulus of 100, 1000, ...")
          .AtLeast(0)
          .AtMost(1),
      Field::Int("held_out_problems", held_out_problems,
                 "Generated tasks: problems of the evaluation set held_out.")
          .AtLeast(1)
          .AtMost(1e6),
      Field::Int("held_out_seed", held_out_seed,
                 "Generated tasks: its seed. It is not the run's: runs of all seeds are measured "
                 "on the same problems.")
          .AtLeast(0),
      Field::Text(
          "file", file,
          "dataset: JSON lines, or a Parquet file (.parquet), of {problem, answer}, {prompt, "
          "answer}, {question, answer} or in verl's schema."),
      Field::TextList("sources", sources,
                      "dataset: several files instead of task.file, mixed by weight: FILE or "
                      "FILE@WEIGHT (1 without). Weight 2 = twice as many problems as weight 1; "
                      "each file is gone through epoch by epoch."),
      Field::Text("python", python,
                  "The interpreter that reads Parquet files, with pyarrow; a bare name is looked "
                  "up in PATH."),
      Field::Text("prompt_key", prompt_key,
                  "Key of the prompt in files, as a or a.b; empty = problem, question, prompt or "
                  "messages."),
      Field::Text("answer_key", answer_key,
                  "Key of the answer in files, of the completion in supervised data; empty = the "
                  "known ones."),
      Field::Text("prompt_template", prompt_template,
                  "Prompt of a problem; {problem} stands for its text. Rows that hold messages are "
                  "used as they are."),
      Field::Text(
          "verifier", verifier,
          "Verifier mode of a dataset and of benchmark files; auto = by data_source, as verl, "
          "else dapo-int. Generated tasks bring their own. python:FILE:FUNCTION = a function of "
          "yours, for generated tasks too (reward.*, docs/rewards.md)."),
      Field::TextList("benchmarks", benchmarks,
                      "held_out, or files (FILE or FILE@MODE); empty = held_out for a generated "
                      "task, nothing for a dataset."),
  };
}

Result<DataSource> DataSourceOf(std::string_view source) {
  const size_t at = source.rfind('@');
  DataSource read{.file = std::string(source.substr(0, at))};
  bool valid = !read.file.empty();
  if (at != std::string_view::npos) {
    const std::string_view weight = source.substr(at + 1);
    const auto [end, error] =
        std::from_chars(weight.data(), weight.data() + weight.size(), read.weight);
    valid = valid && error == std::errc() && end == weight.data() + weight.size() &&
            read.weight >= kMinSourceWeight && read.weight <= kMaxSourceWeight;
  }
  if (valid) return read;
  return InvalidArgument("task.sources = ", Printable(source),
                         ": must be FILE or FILE@WEIGHT, a weight from 0.001 to 1000");
}

Status TaskOptions::Validate() const {
  if (min_numbers > max_numbers) {
    return InvalidArgument("task.min_numbers = ", min_numbers,
                           ": must be <= task.max_numbers = ", max_numbers);
  }
  if (min_digits > max_digits) {
    return InvalidArgument("task.min_digits = ", min_digits,
                           ": must be <= task.max_digits = ", max_digits);
  }
  if (min_steps > max_steps) {
    return InvalidArgument("task.min_steps = ", min_steps,
                           ": must be <= task.max_steps = ", max_steps);
  }
  const bool repeats = operations.find_first_of(operations.substr(0, 1), 1) != std::string::npos ||
                       (operations.size() == 3 && operations[1] == operations[2]);
  if (operations.empty() || operations.size() > 3 || repeats ||
      operations.find_first_not_of("+-*") != std::string::npos) {
    return InvalidArgument("task.operations = \"", Printable(operations),
                           "\": must be some of + - *, each once");
  }
  if (column_share > 0 && !HasColumns(modulus)) {
    return InvalidArgument("task.column_share = ", column_share,
                           ": needs 100, 1000, ... as task.modulus, not ", modulus,
                           " (0 = no columns)");
  }
  if (prompt_template.find("{problem}") == std::string::npos) {
    return InvalidArgument("task.prompt_template = \"", Printable(prompt_template),
                           "\": must contain {problem}");
  }
  if (!prompt_key.empty() && prompt_key == answer_key) {
    return InvalidArgument("task.prompt_key = ", Printable(prompt_key),
                           ": must differ from task.answer_key");
  }
  if (kind != TaskKind::kDataset) return Status::Ok();
  if (file.empty() == sources.empty()) {
    return InvalidArgument("task.file = \"", Printable(file), "\": task.kind = dataset needs ",
                           sources.empty() ? "a file (or task.sources)"
                                           : "either task.file or task.sources, not both");
  }
  for (const std::string& source : sources) PACE_RETURN_IF_ERROR(DataSourceOf(source).status());
  for (const std::string& benchmark : benchmarks) {
    if (benchmark == "held_out") {
      return InvalidArgument("task.benchmarks = held_out: only generated tasks have one");
    }
  }
  return Status::Ok();
}

std::vector<Field> PromptOptions::Fields() {
  return {
      Field::Enum("chat", chat, kChatNames,
                  "auto = the model's chat template where it has one, with a problem's text as one "
                  "user message; never = the text as it stands."),
      Field::Text("system", system,
                  "System message of conversations that do not begin with one; empty = none."),
      Field::Enum("thinking", thinking, kThinkingNames,
                  "The chat template's variable enable_thinking; auto = undefined."),
      Field::TextList("template_variables", template_variables,
                      "Further variables of the chat template, name=value (JSON, else text)."),
      Field::Int("max_tokens", max_tokens, "Longest prompt.").AtLeast(1).AtMost(1e7),
      Field::Enum("too_long", too_long, kLongPromptNames,
                  "A longer prompt stops the run before it starts, or its problem is left out and "
                  "counted."),
  };
}

Status PromptOptions::Validate() const {
  for (const std::string& variable : template_variables) {
    const size_t equals = variable.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return InvalidArgument("prompt.template_variables = ", Printable(variable),
                             ": must be name=value");
    }
    if (thinking != Thinking::kAuto && variable.substr(0, equals) == "enable_thinking") {
      return InvalidArgument("prompt.template_variables = ", Printable(variable),
                             ": prompt.thinking sets it already");
    }
  }
  return Status::Ok();
}

}  // namespace pace
