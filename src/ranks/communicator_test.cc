#include "ranks/communicator.h"

#include <gtest/gtest.h>

#include <mutex>

#include "ranks/gloo_threads.h"
#include "ranks/thread_ranks.h"

namespace pace {
namespace {

// What every kind of ranks must do.
void CheckCollectives(Communicator& ranks) {
  const int64_t rank = ranks.rank();
  const int64_t size = ranks.size();
  const int64_t all_ranks = size * (size - 1) / 2;
  const at::Tensor sum = at::arange(5, at::kFloat) + static_cast<double>(rank);
  ASSERT_TRUE(ranks.AllReduce(sum).ok());
  EXPECT_TRUE(at::equal(
      sum, at::arange(5, at::kFloat) * static_cast<double>(size) + static_cast<double>(all_ranks)));

  const at::Tensor whole = at::arange(3 * size, at::kFloat) * static_cast<double>(rank + 1);
  const at::Tensor part = at::empty({3}, at::kFloat);
  ASSERT_TRUE(ranks.ReduceScatter(whole, part).ok());
  EXPECT_TRUE(at::equal(part, at::arange(3 * rank, 3 * rank + 3, at::kFloat) *
                                  static_cast<double>(all_ranks + size)));

  const at::Tensor gathered = at::empty({size, 2}, at::kDouble);
  ASSERT_TRUE(
      ranks.AllGather(at::full({2}, static_cast<double>(rank), at::kDouble), gathered).ok());
  for (int64_t i = 0; i < size; ++i) {
    EXPECT_EQ(gathered[i][1].item<double>(), static_cast<double>(i));
  }

  // Two at a time, of different sizes, in place and not.
  const at::Tensor long_whole = at::ones({1000 * size}, at::kFloat) * static_cast<double>(rank);
  const at::Tensor long_part = long_whole.narrow(0, 1000 * rank, 1000);
  const at::Tensor short_all = at::empty({2 * size}, at::kFloat);
  PendingCollective sum_of_long = ranks.StartReduceScatter(long_whole, long_part);
  PendingCollective gather =
      ranks.StartAllGather(at::full({2}, static_cast<double>(rank)), short_all);
  PendingCollective sum_of_short = ranks.StartReduceScatter(whole, part);
  ASSERT_TRUE(sum_of_long.Finish().ok());
  ASSERT_TRUE(gather.Finish().ok());
  ASSERT_TRUE(sum_of_short.Finish().ok());
  EXPECT_TRUE(at::equal(long_part, at::full({1000}, static_cast<double>(all_ranks))));
  EXPECT_TRUE(at::equal(short_all, at::arange(size).repeat_interleave(2).to(at::kFloat)));
  EXPECT_TRUE(at::equal(part, at::arange(3 * rank, 3 * rank + 3, at::kFloat) *
                                  static_cast<double>(all_ranks + size)));

  std::string text = rank == size - 1 ? std::string("one\0two", 7) : "other";
  ASSERT_TRUE(ranks.BroadcastBytes(text, size - 1).ok());
  EXPECT_EQ(text, std::string("one\0two", 7));
  std::string nothing = rank == 0 ? "" : "left over";
  ASSERT_TRUE(ranks.AwaitBytes(nothing, 0).ok());
  EXPECT_EQ(nothing, "");

  const Result<std::vector<std::string>> texts =
      ranks.GatherBytes(std::string(static_cast<size_t>(rank), 'x'));
  ASSERT_TRUE(texts.ok());
  for (int64_t i = 0; i < size; ++i) {
    EXPECT_EQ((*texts)[static_cast<size_t>(i)].size(), static_cast<size_t>(i));
  }
}

TEST(CommunicatorTest, ThreadsReduceGatherAndBroadcast) {
  for (const int64_t size : {1, 2, 3, 4}) RunThreadRanks(size, CheckCollectives);
}

TEST(CommunicatorTest, GlooReducesGathersAndBroadcasts) {
  for (const int64_t size : {2, 3, 4}) RunGlooRanks(size, {}, CheckCollectives);
}

TEST(CommunicatorTest, GlooSumsToTheSameBitsOnEveryRankAndInEveryRun) {
  std::mutex mutex;
  std::vector<at::Tensor> results;
  for (int run = 0; run < 2; ++run) {
    RunGlooRanks(3, {}, [&](Communicator& ranks) {
      const at::Tensor values =
          at::sin(at::arange(10'007, at::kFloat) * static_cast<double>(ranks.rank() + 1));
      ASSERT_TRUE(ranks.AllReduce(values).ok());
      const std::scoped_lock lock(mutex);
      results.push_back(values);
    });
  }
  ASSERT_EQ(results.size(), 6U);
  for (const at::Tensor& result : results) EXPECT_TRUE(at::equal(result, results.front()));
}

TEST(CommunicatorTest, ABrokenGroupFailsEveryLaterCallWithTheFirstError) {
  ThreadRanks ranks(2);
  ranks.Break();
  const at::Tensor tensor = at::zeros({1});
  const Status first = ranks.At(0).AllReduce(tensor);
  ASSERT_FALSE(first.ok());
  EXPECT_NE(first.message().find("rank 0 of 2: all-reduce"), std::string::npos);
  EXPECT_EQ(ranks.At(0).Broadcast(tensor, 0).message(), first.message());
  EXPECT_EQ(ranks.At(0).failure().message(), first.message());
}

TEST(CommunicatorTest, RanksThatNeverMeetGiveOneLine) {
  const Result<std::unique_ptr<Communicator>> ranks = ConnectRanks(
      {.launcher = "test", .rank = 1, .size = 2, .address = "127.0.0.1", .port = FreePort()},
      {.join = std::chrono::seconds(1)});
  ASSERT_FALSE(ranks.ok());
  EXPECT_NE(ranks.status().message().find("rank 1 of 2: the ranks did not meet"),
            std::string::npos);
  EXPECT_EQ(ranks.status().message().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace pace
