// A program's output as the text that SandboxFusion shows.
// Thread-safety: functions of their arguments.
#ifndef PACE_SANDBOX_OUTPUT_TEXT_H_
#define PACE_SANDBOX_OUTPUT_TEXT_H_

#include <string>
#include <string_view>

namespace pace {

// UTF-8 stays as it is; anything else becomes "[DecodeError] " and Python's own
// words for the first byte that does not fit. Where the stream was cut, half a
// character at its end is dropped first.
std::string OutputText(std::string_view bytes, bool cut);

}  // namespace pace

#endif  // PACE_SANDBOX_OUTPUT_TEXT_H_
