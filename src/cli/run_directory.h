// Where a run goes when nobody says, and whether anything can be put there.
#ifndef PACE_CLI_RUN_DIRECTORY_H_
#define PACE_CLI_RUN_DIRECTORY_H_

#include <filesystem>
#include <string>

#include "core/concat.h"
#include "core/status.h"

namespace pace {

// runs/NAME, or the first of runs/NAME-2, runs/NAME-3, ... that is free.
inline std::string FreeRunDirectory(const std::string& settings) {
  const std::string base = "runs/" + std::filesystem::path(settings).stem().string();
  std::string candidate = base;
  std::error_code ignored;
  for (int number = 2; std::filesystem::exists(candidate, ignored); ++number) {
    candidate = Concat(base, "-", number);
  }
  return candidate;
}

// Whether `folder` is a directory that may be written to, or can be made, with those
// above it. Makes nothing.
Status CheckCanHold(const std::string& folder);

// The same for a new run; a folder that holds one already is an error.
Status CheckNewRunDirectory(const std::string& folder);

}  // namespace pace

#endif  // PACE_CLI_RUN_DIRECTORY_H_
