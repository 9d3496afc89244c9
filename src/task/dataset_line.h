// One line of a dataset.
//
//   prompt      "problem", "question" or "prompt" (text), or "prompt" or
//               "messages" (a list of {"role", "content"})
//   answer      "answer", or "reward_model": {"ground_truth"}
//   id          "id", or "extra_info": {"index"}
//
//   {"id": "aime2024/0", "problem": "Find $x$.", "answer": "204"}
//   {"prompt": "Find $x$.", "answer": 204}
//   {"prompt": [{"role": "user", "content": "..."}],
//    "reward_model": {"ground_truth": "34"}, "data_source": "math_dapo",
//    "ability": "MATH", "extra_info": {"index": "9a9b6eb4"}}
//
// The first of these keys that is there counts, but a line with a list under
// `prompt` and with `reward_model` is of verl's schema (the last form) whatever
// else it holds. Of an answer beside a `question` what follows the last "####"
// counts, without its commas, as GSM8K has it. Ids and answers may be text or
// numbers; an id may be missing. Other keys are passed over. DatasetKeys names
// other keys.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_TASK_DATASET_LINE_H_
#define PACE_TASK_DATASET_LINE_H_

#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "task/problem.h"

namespace pace {

// Keys of prompt and answer; empty = the known ones. "a.b" is key b of object a.
struct DatasetKeys {
  std::string prompt = {};
  std::string answer = {};
};

struct DatasetLine {
  std::optional<std::string> id;
  Prompt prompt;  // text: the problem, before any template
  std::string answer;
  std::string data_source;
  std::string ability;
  std::string extra_info;  // JSON as it is written; empty where there is none
};

Result<DatasetLine> ParseDatasetLine(std::string_view line, const DatasetKeys& keys = {});

}  // namespace pace

#endif  // PACE_TASK_DATASET_LINE_H_
