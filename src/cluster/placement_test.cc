#include "cluster/placement.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "config/settings.h"
#include "core/random.h"

namespace pace {
namespace {

TEST(PlacementTest, ThePublishedLayouts) {
  const auto place = [](const char* preset) {
    const Result<Settings> settings = LoadSettings(preset, {});
    EXPECT_TRUE(settings.ok());
    return PlaceOnNodes(settings->cluster).value();
  };
  const Placement small = place("math-4b");
  EXPECT_EQ(small.num_nodes, 1);
  EXPECT_EQ(small.ranks, (std::vector<PlacedRank>{{0, 0}, {0, 1}}));
  EXPECT_EQ(small.engines.size(), 4U);
  EXPECT_EQ(small.engines[3], (PlacedEngine{0, 3, {5}}));
  const Placement large = place("math-8b");
  EXPECT_EQ(large.num_nodes, 2);
  EXPECT_EQ(large.NumTrainerNodes(), 1);
  EXPECT_EQ(large.NumGpus(0), 8);
  EXPECT_EQ(large.NumGpus(1), 8);
  EXPECT_EQ(large.engines[4], (PlacedEngine{1, 0, {0}}));
  const Placement moe = place("moe-30b");
  EXPECT_EQ(moe.num_nodes, 3);
  EXPECT_EQ(moe.engines[0], (PlacedEngine{1, 0, {4, 5}}));
}

// What the simulator computes with is what is placed.
TEST(PlacementTest, RandomLayoutsUseEveryGpuOnceAndAgreeWithTheSimulator) {
  const CounterRandom random(11, 0);
  int64_t num_placed = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const auto draw = [&](uint64_t what, int64_t least, int64_t most) {
      return least +
             static_cast<int64_t>(random.Uniform(i, what) * static_cast<double>(most - least + 1));
    };
    ClusterOptions cluster;
    cluster.gpus_per_node = draw(0, 1, 8);
    cluster.tensor_parallel = draw(1, 1, 4);
    cluster.rollout_gpus = cluster.tensor_parallel * draw(2, 1, 20);
    cluster.trainer_gpus = draw(3, 1, 20);
    const Result<Placement> placed = PlaceOnNodes(cluster);
    if (cluster.tensor_parallel > cluster.gpus_per_node) {
      EXPECT_FALSE(placed.ok());
      continue;
    }
    ASSERT_TRUE(placed.ok());
    ++num_placed;
    EXPECT_EQ(static_cast<int64_t>(placed->engines.size()), cluster.NumEngines());
    EXPECT_EQ(static_cast<int64_t>(placed->ranks.size()), cluster.TrainingGpus());
    EXPECT_EQ(placed->num_nodes == 1, cluster.FitsOneNode());
    std::set<std::pair<int64_t, int64_t>> used;
    std::set<std::pair<int64_t, int64_t>> ports;
    for (const PlacedRank& rank : placed->ranks) used.emplace(rank.node, rank.gpu);
    for (const PlacedEngine& engine : placed->engines) {
      for (const int64_t gpu : engine.gpus_on_node) used.emplace(engine.node, gpu);
      ports.emplace(engine.node, engine.index_on_node);
    }
    EXPECT_EQ(static_cast<int64_t>(used.size()), cluster.AllGpus());
    EXPECT_EQ(ports.size(), placed->engines.size());
    EXPECT_LT(used.rbegin()->first, placed->num_nodes);
    for (const auto& [node, gpu] : used) EXPECT_LT(gpu, cluster.gpus_per_node) << node;
  }
  EXPECT_GT(num_placed, 1000);
}

TEST(PlacementTest, WhatNoLauncherStartsIsRefused) {
  ClusterOptions cluster;
  cluster.layout = Layout::kColocated;
  EXPECT_EQ(PlaceOnNodes(cluster).status().message(),
            "cluster.layout = colocated: must be disjoint to be launched (engines and trainer "
            "have GPUs of their own; the simulator knows both)");
  cluster = {};
  cluster.rollout_gpus = 16;
  cluster.tensor_parallel = 16;
  EXPECT_EQ(PlaceOnNodes(cluster).status().message(),
            "cluster.tensor_parallel = 16: must be <= cluster.gpus_per_node = 8 (an engine is on "
            "one machine)");
}

}  // namespace
}  // namespace pace
