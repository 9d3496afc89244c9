#include <gtest/gtest.h>

#include "record/run_directory.h"

namespace pace {
namespace {

Manifest With(PolicyDevice device, const std::string& driver) {
  Settings settings;
  settings.policy.device = device;
  settings.train.num_threads = 2;
  settings.engine.count = 3;
  settings.engine.threads = 4;
  return ManifestOf(settings, "pace", driver);
}

TEST(RunManifestTest, NamesTheDeviceThatTheSettingsName) {
  EXPECT_EQ(With(PolicyDevice::kCpu, "runtime").device, "cpu");
  EXPECT_EQ(With(PolicyDevice::kCuda, "runtime").device, "cuda");
  EXPECT_EQ(With(PolicyDevice::kCpu, "lab").threads, 14);
}

TEST(RunManifestTest, PromisesBitsOnTheCpuAlone) {
  EXPECT_EQ(With(PolicyDevice::kCpu, "lab").determinism, "bitwise");
  EXPECT_EQ(With(PolicyDevice::kCpu, "runtime").determinism, "responses");
  EXPECT_EQ(With(PolicyDevice::kCuda, "lab").determinism, "none");
  EXPECT_EQ(With(PolicyDevice::kCuda, "runtime").determinism, "none");
}

}  // namespace
}  // namespace pace
