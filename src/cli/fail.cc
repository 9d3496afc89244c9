#include <cstdio>

#include "cli/commands.h"

namespace pace {

int Fail(const Status& status) {
  std::fprintf(stderr, "pace: %s\n", status.message().c_str());
  return 2;
}

}  // namespace pace
