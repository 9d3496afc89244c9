// PACE_CHECK stops the process when the program itself is wrong.
//
// It stays on in release builds: corrupted version accounting is worse than a
// crash. It must never be reachable from user input; bad input is a Status.
//
//   PACE_CHECK(credits >= 0, "credits = ", credits);
#ifndef PACE_CORE_CHECK_H_
#define PACE_CORE_CHECK_H_

#include <source_location>
#include <string>

#include "core/concat.h"

namespace pace {

// Prints file, line, condition and message to stderr, then aborts.
[[noreturn]] void CheckFailed(const char* condition, const std::string& message,
                              const std::source_location& where);

}  // namespace pace

#define PACE_CHECK(condition, ...)                                 \
  do {                                                             \
    if (!(condition)) [[unlikely]] {                               \
      ::pace::CheckFailed(#condition, ::pace::Concat(__VA_ARGS__), \
                          std::source_location::current());        \
    }                                                              \
  } while (false)

#endif  // PACE_CORE_CHECK_H_
