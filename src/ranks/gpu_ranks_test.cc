#include "ranks/gpu_ranks.h"

#include <gtest/gtest.h>

#include <mutex>

#include "ranks/gpu_agreement.h"
#include "ranks/thread_ranks.h"

namespace pace {
namespace {

std::vector<std::string> ErrorsOn(int64_t size,
                                  const std::function<Status(Communicator&)>& connect) {
  std::mutex mutex;
  std::vector<std::string> errors(static_cast<size_t>(size));
  RunThreadRanks(size, [&](Communicator& ranks) {
    const Status status = connect(ranks);
    const std::scoped_lock lock(mutex);
    errors[static_cast<size_t>(ranks.rank())] = status.message();
  });
  return errors;
}

TEST(GpuRanksTest, ARankThatCannotIsNamedOnEveryRank) {
  const std::vector<std::string> errors = ErrorsOn(3, [](Communicator& ranks) {
    return AgreeOnGpus(ranks, ranks.rank() == 1 ? Unavailable("no GPU: none is visible") : Status(),
                       "NCCL 2.30.7");
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error, "policy.device = cuda: rank 1 of 3: no GPU: none is visible");
  }
}

TEST(GpuRanksTest, AnotherLibraryIsRefusedOnEveryRank) {
  const std::vector<std::string> errors = ErrorsOn(2, [](Communicator& ranks) {
    return AgreeOnGpus(ranks, Status(), ranks.rank() == 1 ? "NCCL 2.28.9" : "NCCL 2.30.7");
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error,
              "policy.device = cuda: rank 1 of 2 has NCCL 2.28.9, but rank 0 has NCCL 2.30.7 (use "
              "the same library on every rank)");
  }
}

TEST(GpuRanksTest, EqualRanksAgree) {
  for (const std::string& error : ErrorsOn(
           4, [](Communicator& ranks) { return AgreeOnGpus(ranks, Status(), "NCCL 2.30.7"); })) {
    EXPECT_EQ(error, "");
  }
}

// Would fail a test that reached it.
class NoGpus final : public GpuCollectives {
 public:
  Status Sum(const at::Tensor& /*tensor*/) override { return Reached(); }
  Status SumParts(const at::Tensor& /*all*/, const at::Tensor& /*own*/) override {
    return Reached();
  }
  Status Collect(const at::Tensor& /*own*/, const at::Tensor& /*all*/) override {
    return Reached();
  }
  Status Send(const at::Tensor& /*tensor*/, int64_t /*root*/) override { return Reached(); }

 private:
  static Status Reached() { return Unavailable("a CPU tensor went to the GPUs"); }
};

TEST(GpuRanksTest, TensorsOfTheCpuDoNotGoToTheGpus) {
  RunThreadRanks(2, [](Communicator& ranks) {
    ranks.UseForGpus(std::make_unique<NoGpus>());
    const at::Tensor one = at::ones({2});
    const at::Tensor all = at::empty({4});
    EXPECT_TRUE(ranks.AllReduce(one).ok());
    EXPECT_TRUE(ranks.AllGather(one, all).ok());
    EXPECT_TRUE(ranks.ReduceScatter(all, one).ok());
    EXPECT_TRUE(ranks.Broadcast(one, 0).ok());
    std::string text = "x";
    EXPECT_TRUE(ranks.BroadcastBytes(text, 0).ok());
    EXPECT_EQ(ranks.failure().message(), "");
  });
}

}  // namespace
}  // namespace pace
