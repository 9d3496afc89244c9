// Where the tests of this folder put files.
#ifndef PACE_TASK_TEST_DATA_H_
#define PACE_TASK_TEST_DATA_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace pace {

// A file in a folder of the running test's own.
inline std::string WriteScratchFile(const std::string& name, std::string_view bytes) {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder = std::filesystem::path(PACE_BINARY_DIR) / "task_scratch" /
                                       test->test_suite_name() / test->name();
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
  return (folder / name).string();
}

}  // namespace pace

#endif  // PACE_TASK_TEST_DATA_H_
