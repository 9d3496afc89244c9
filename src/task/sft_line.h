// One line of a file of supervised examples.
//
//   {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", ...}]}
//   {"prompt": "...", "completion": "..."}          each text or messages
//   {"problem": "...", "solution": "..."}           through task.prompt_template
//
// A conversation gives one example for each of its assistant messages: what comes
// before it is the prompt. "question" may stand for "problem". task.prompt_key and
// task.answer_key name other keys of prompt and completion.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TASK_SFT_LINE_H_
#define PACE_TASK_SFT_LINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "config/task_options.h"
#include "core/status.h"
#include "task/synthetic_source.h"

namespace pace {

Result<std::vector<SftExample>> ParseSftLine(std::string_view line, const TaskOptions& task);

// The examples of task.file, in its order; an error where there are none.
Result<std::vector<SftExample>> ReadSftExamples(const TaskOptions& task);

}  // namespace pace

#endif  // PACE_TASK_SFT_LINE_H_
