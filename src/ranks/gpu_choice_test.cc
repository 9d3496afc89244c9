#include "ranks/gpu_choice.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace pace {
namespace {

TEST(GpuChoiceTest, RanksOfAMachineTakeItsGpusInTurn) {
  EXPECT_EQ(GpuOfRank(0, std::nullopt, 4), "0");
  EXPECT_EQ(GpuOfRank(3, std::nullopt, 4), "3");
  EXPECT_EQ(GpuOfRank(5, std::nullopt, 4), "1");
  EXPECT_EQ(GpuOfRank(2, std::nullopt, 1), "0");
}

TEST(GpuChoiceTest, TheListOfTheLauncherCounts) {
  EXPECT_EQ(GpuOfRank(0, "4,5", 8), "4");
  EXPECT_EQ(GpuOfRank(1, "4, 5 ,6", 8), "5");
  EXPECT_EQ(GpuOfRank(2, "4,5", 8), "4");
  EXPECT_EQ(GpuOfRank(1, "GPU-8932f937,MIG-1f2", 8), "MIG-1f2");
  // One for each task, as srun --gpus-per-task gives them.
  EXPECT_EQ(GpuOfRank(3, "0", 8), "0");
}

TEST(GpuChoiceTest, WithoutGpusThereIsNoChoice) {
  EXPECT_EQ(GpuOfRank(0, std::nullopt, 0), std::nullopt);
  EXPECT_EQ(GpuOfRank(0, "", 8), std::nullopt);
  EXPECT_EQ(GpuOfRank(0, "-1", 8), std::nullopt);
  EXPECT_EQ(GpuOfRank(1, "2,-1,3", 8), "2");
}

TEST(GpuChoiceTest, TheChoiceIsTheProcesss) {
  ::setenv("CUDA_VISIBLE_DEVICES", "6,7", 1);
  SelectGpu({.launcher = "test", .rank = 3, .size = 4, .local_rank = 1});
  EXPECT_EQ(ProcessVariable("CUDA_VISIBLE_DEVICES"), "7");
  EXPECT_TRUE(GpuPlace().ends_with(" 7"));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_GE(CountGpus(), 0);
}

}  // namespace
}  // namespace pace
