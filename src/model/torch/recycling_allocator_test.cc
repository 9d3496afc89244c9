#include "model/torch/recycling_allocator.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pace {
namespace {

at::Tensor BytesOf(int64_t bytes) {
  return at::empty({bytes}, at::kByte);
}

class RecyclingAllocatorTest : public testing::Test {
 protected:
  void SetUp() override {
    RecycleTensorMemory();
    const at::Tensor probe = BytesOf(1 << 20);
    if (MeasureRecycledMemory().in_use == 0) {
      GTEST_SKIP() << "the address sanitizer sees tensors as they are";
    }
  }
};

TEST(RecycledBlockBytesTest, WastesAnEighthAtMost) {
  for (size_t bytes = 1; bytes < (size_t{1} << 22); bytes = bytes * 9 / 8 + 1) {
    EXPECT_GE(RecycledBlockBytes(bytes), bytes);
    EXPECT_LE(RecycledBlockBytes(bytes), bytes + bytes / 8);
    EXPECT_EQ(RecycledBlockBytes(RecycledBlockBytes(bytes)), RecycledBlockBytes(bytes));
  }
}

TEST_F(RecyclingAllocatorTest, ATensorIsServedFromTheFreedOneOfItsSize) {
  void* const first = BytesOf(1 << 20).data_ptr();  // freed at once
  const size_t num_fresh = MeasureRecycledMemory().num_fresh;
  const at::Tensor second = BytesOf((1 << 20) - 100);
  EXPECT_EQ(second.data_ptr(), first);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second.data_ptr()) % 64, 0U);
  EXPECT_EQ(MeasureRecycledMemory().num_fresh, num_fresh);
}

TEST_F(RecyclingAllocatorTest, SmallAndEmptyTensorsAreNotKept) {
  const RecycledMemory before = MeasureRecycledMemory();
  {
    const at::Tensor small = BytesOf(1000);
    const at::Tensor empty = BytesOf(0);
    EXPECT_EQ(empty.numel(), 0);
  }
  EXPECT_EQ(MeasureRecycledMemory().waiting, before.waiting);
  EXPECT_EQ(MeasureRecycledMemory().in_use, before.in_use);
}

TEST_F(RecyclingAllocatorTest, WhatWaitsIsBoundedByWhatWasInUse) {
  // Every size once, one after the other: without a bound all of them would wait.
  for (int64_t megabytes = 1; megabytes <= 32; ++megabytes) {
    const at::Tensor tensor = BytesOf(megabytes << 20);
    const RecycledMemory memory = MeasureRecycledMemory();
    EXPECT_LE(memory.in_use + memory.waiting, memory.most_in_use + memory.most_in_use / 4);
  }
  const RecycledMemory memory = MeasureRecycledMemory();
  EXPECT_LE(memory.in_use + memory.waiting, memory.most_in_use + memory.most_in_use / 4);
}

TEST_F(RecyclingAllocatorTest, ATensorMayBeFreedOnAnotherThread) {
  const RecycledMemory before = MeasureRecycledMemory();
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int64_t round = 0; round < 50; ++round) {
        at::Tensor tensor = BytesOf(((i + round) % 5 + 1) << 17);
        tensor.fill_(static_cast<int>(i));
        std::thread([moved = std::move(tensor), i] {
          EXPECT_EQ(moved.select(0, moved.numel() - 1).item<uint8_t>(), i);
        }).join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(MeasureRecycledMemory().in_use, before.in_use);
}

}  // namespace
}  // namespace pace
