// One line of a dataset.
//
// Two forms, told apart by their keys; other keys are passed over:
//
//   {"id": "aime2024/0", "problem": "Find $x$.", "answer": "204"}
//   {"prompt": [{"role": "user", "content": "..."}],
//    "reward_model": {"ground_truth": "34"}, "data_source": "math_dapo",
//    "ability": "MATH", "extra_info": {"index": "9a9b6eb4"}}
//
// The first may say "question" for "problem", as GSM8K does; what follows the
// last "####" of the answer is then the answer, without its commas. The second
// is verl's schema. Ids and answers may be text or numbers; an id may be
// missing. A line with `prompt` and `reward_model` is of the second form.
//
// Thread-safety: a function of its argument.
#ifndef PACE_TASK_DATASET_LINE_H_
#define PACE_TASK_DATASET_LINE_H_

#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "task/problem.h"

namespace pace {

struct DatasetLine {
  std::optional<std::string> id;
  Prompt prompt;  // text: the problem, before any template
  std::string answer;
  std::string data_source;
  std::string ability;
};

Result<DatasetLine> ParseDatasetLine(std::string_view line);

}  // namespace pace

#endif  // PACE_TASK_DATASET_LINE_H_
