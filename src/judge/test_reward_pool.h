// What tests of reward pools share: a pool of a function in Python, and the search for processes
// that it leaves.
#ifndef PACE_JUDGE_TEST_REWARD_POOL_H_
#define PACE_JUDGE_TEST_REWARD_POOL_H_

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "core/test_files.h"
#include "judge/reward_pool.h"

namespace pace {

// Every process whose command line or environment holds the mark of this test.
inline std::set<std::string> ProcessesWith(const std::string& mark) {
  std::set<std::string> found;
  DIR* const folder = opendir("/proc");
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (name == std::to_string(getpid())) continue;
    for (const char* file : {"/cmdline", "/environ"}) {
      std::ifstream stream("/proc/" + name + file, std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(stream)), {});
      if (text.find(mark) != std::string::npos) found.insert(name);
    }
  }
  closedir(folder);
  return found;
}

inline constexpr char kMark[] = "reward-pool-test-mark";

class RewardPoolTest : public testing::Test {
 protected:
  // A pool of the function `score` in this source.
  std::shared_ptr<RewardPool> Open(const std::string& source) {
    const Result<std::shared_ptr<RewardPool>> pool = TryOpen(source);
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    return pool.ok() ? *pool : nullptr;
  }
  Result<std::shared_ptr<RewardPool>> TryOpen(const std::string& source) {
    const std::filesystem::path folder = ScratchFolder();
    file_ = WriteFile(folder / "rewards.py", source);
    return RewardPool::Open({.python = {(folder / "rewards.py").string(), "score"}}, options_);
  }
  // What the processes start inherits the mark, whatever its command line.
  void SetUp() override { setenv("REWARD_TEST_MARK", kMark, 1); }
  void TearDown() override {
    const std::set<std::string> left = ProcessesWith(kMark);
    EXPECT_TRUE(left.empty()) << left.size() << " processes are left";
  }

  static RewardRequest Request(const std::string& response, const std::string& answer = "4") {
    return {.id = "p/1", .response = response, .answer = answer, .prompt = "\"What?\""};
  }

  RewardOptions options_{.num_workers = 2, .timeout = 1, .memory_mib = 512};
  std::string file_;
};

}  // namespace pace

#endif  // PACE_JUDGE_TEST_REWARD_POOL_H_
