#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace pace {

void CheckFailed(const char* condition, const std::string& message,
                 const std::source_location& where) {
  std::fprintf(stderr, "%s:%u: check failed: %s%s%s\n", where.file_name(),
               static_cast<unsigned>(where.line()), condition, message.empty() ? "" : ": ",
               message.c_str());
  std::abort();
}

}  // namespace pace
