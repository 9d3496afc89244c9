// AnswerLines: the loop of a command that answers every line of its input with
// one line, in order, and answers what is there before it waits for more.
#ifndef PACE_CLI_ANSWER_LINES_H_
#define PACE_CLI_ANSWER_LINES_H_

#include <functional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "terminal/line_input.h"

namespace pace {

// Appends the answer to `line`, with its line end, to `out`.
using LineAnswer = std::function<Status(std::string_view line, std::string& out)>;

// Empty lines are passed over. Stops at the first error, which then begins with
// the line's place; the lines before it are answered.
Status AnswerLines(LineInput& input, const LineAnswer& answer);

}  // namespace pace

#endif  // PACE_CLI_ANSWER_LINES_H_
