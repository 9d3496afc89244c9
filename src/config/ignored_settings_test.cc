#include "config/ignored_settings.h"

#include <gtest/gtest.h>

#include <fstream>

namespace pace {
namespace {

using Keys = std::vector<std::string>;

TEST(IgnoredSettingsTest, TheCommandLineIsNamed) {
  EXPECT_EQ(IgnoredSettings("runtime", "tiny",
                            {"cluster.rollout_gpus=4", "run.num_steps=3", "gpu.hbm_gib=80",
                             "cluster.rollout_gpus=8"}),
            (Keys{"cluster.rollout_gpus", "gpu.hbm_gib"}));
  EXPECT_EQ(IgnoredSettings("lab", "tiny",
                            {"cluster.rollout_gpus=4", "engine.count=2", "engine.kv_mib=8",
                             "workload.tool_concurrency=3", "workload.prompt_tokens=9"}),
            (Keys{"engine.count", "workload.prompt_tokens"}));
}

TEST(IgnoredSettingsTest, APresetIsNotAPersonsDoing) {
  EXPECT_EQ(IgnoredSettings("runtime", "tiny", {}), Keys{});
}

TEST(IgnoredSettingsTest, AFileIsAndABrokenOneNamesNothing) {
  const std::string path = testing::TempDir() + "ignored_settings_test.yaml";
  std::ofstream(path) << "preset: tiny\ncluster:\n  slots: 3\ntrain:\n  threads: 2\n";
  EXPECT_EQ(IgnoredSettings("runtime", path, {"cluster.slots=5"}), Keys{"cluster.slots"});
  std::ofstream(path) << "cluster: [\n";
  EXPECT_EQ(IgnoredSettings("runtime", path, {}), Keys{});
  EXPECT_EQ(IgnoredSettings("runtime", "/no/such/file", {}), Keys{});
}

TEST(IgnoredSettingsTest, AFileToLaunchDescribesItsCluster) {
  const std::string path = testing::TempDir() + "ignored_settings_launch_test.yaml";
  std::ofstream(path) << "preset: tiny\ncluster:\n  slots: 3\nlaunch:\n  engine: pace\n";
  EXPECT_EQ(IgnoredSettings("runtime", path, {}), Keys{});
  EXPECT_EQ(IgnoredSettings("runtime", path, {"gpu.memory_gib=40"}), Keys{"gpu.memory_gib"});
}

TEST(IgnoredSettingsTest, OneLineListsThem) {
  EXPECT_EQ(IgnoredSettingsLine("runtime", {}), "");
  EXPECT_EQ(IgnoredSettingsLine("runtime", {"cluster.rollout_gpus", "gpu.hbm_gib"}),
            "--driver runtime does not read cluster.rollout_gpus, gpu.hbm_gib: it runs on this "
            "machine (sim and lab model a cluster)");
  EXPECT_NE(IgnoredSettingsLine("lab", Keys(20, "runtime.x")).find(" and 12 more"),
            std::string::npos);
}

}  // namespace
}  // namespace pace
