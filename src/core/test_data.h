// Where tests find the reference data, which is no part of the repository.
//
//   const std::filesystem::path folder = SharedData() / "numerics";
//   if (!std::filesystem::exists(folder)) GTEST_SKIP() << WithoutData(folder, 346);
//
// For tests alone: it reads PACE_SOURCE_DIR, which they are compiled with.
#ifndef PACE_CORE_TEST_DATA_H_
#define PACE_CORE_TEST_DATA_H_

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/concat.h"

namespace pace {

// $PACE_SHARED_DATA, or ../shared/data beside the checkout.
inline std::filesystem::path SharedData() {
  const char* const named = std::getenv("PACE_SHARED_DATA");
  if (named != nullptr) return named;
  return std::filesystem::path(PACE_SOURCE_DIR) / ".." / "shared" / "data";
}

// Why a test is skipped, and how much it would have checked.
inline std::string WithoutData(const std::filesystem::path& path, int64_t num_cases) {
  return Concat(num_cases, num_cases == 1 ? " case" : " cases", " skipped: no ", path.string(),
                " (set PACE_SHARED_DATA)");
}

}  // namespace pace

#endif  // PACE_CORE_TEST_DATA_H_
