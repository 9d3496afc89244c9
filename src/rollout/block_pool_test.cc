#include "rollout/block_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace pace {
namespace {

TEST(BlockPoolTest, HandsOutEveryBlockOnce) {
  BlockPool pool(5);
  std::set<BlockId> taken;
  while (pool.num_free() > 0) taken.insert(pool.Take());
  EXPECT_EQ(taken, (std::set<BlockId>{0, 1, 2, 3, 4}));
}

TEST(BlockPoolTest, ASharedBlockIsFreeWithItsLastOwner) {
  BlockPool pool(1);
  const BlockId block = pool.Take();
  pool.Share(block);
  pool.Release(block);
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.num_owners(block), 1);
  pool.Release(block);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockPoolDeathTest, NoBlockIsReleasedTwiceOrTakenFromNothing) {
  BlockPool pool(1);
  const BlockId block = pool.Take();
  EXPECT_DEATH(pool.Take(), "no free block");
  pool.Release(block);
  EXPECT_DEATH(pool.Release(block), "released twice");
  EXPECT_DEATH(pool.Share(block), "shared but free");
}

TEST(BlockPoolTest, BlocksOfRoundsUp) {
  EXPECT_EQ(BlocksOf(0), 0);
  EXPECT_EQ(BlocksOf(1), 1);
  EXPECT_EQ(BlocksOf(kBlockTokens), 1);
  EXPECT_EQ(BlocksOf(kBlockTokens + 1), 2);
}

}  // namespace
}  // namespace pace
