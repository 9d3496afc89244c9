// Where a run goes when nobody says.
#ifndef PACE_CLI_RUN_DIRECTORY_H_
#define PACE_CLI_RUN_DIRECTORY_H_

#include <filesystem>
#include <string>

#include "core/concat.h"

namespace pace {

// runs/NAME, or the first of runs/NAME-2, runs/NAME-3, ... that is free.
inline std::string FreeRunDirectory(const std::string& settings) {
  const std::string base = "runs/" + std::filesystem::path(settings).stem().string();
  std::string candidate = base;
  std::error_code ignored;  // RunWriter says what is wrong with a directory
  for (int number = 2; std::filesystem::exists(candidate, ignored); ++number) {
    candidate = Concat(base, "-", number);
  }
  return candidate;
}

}  // namespace pace

#endif  // PACE_CLI_RUN_DIRECTORY_H_
