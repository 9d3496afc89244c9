#include "nccl/nccl_group.h"

#include <gtest/gtest.h>

#include "nccl/fake_nccl.h"

namespace pace {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kRemoteError = 6;
constexpr int kNever = 1 << 30;

NcclGroup::Options Quick() {
  return {.rank = 1, .size = 2, .join = milliseconds(60), .collective = milliseconds(60)};
}

std::unique_ptr<NcclGroup> Joined(const FakeNccl& fake, const NcclGroup::Options& options) {
  Result<std::unique_ptr<NcclGroup>> group = NcclGroup::Join(fake.calls(), {}, options);
  EXPECT_TRUE(group.ok()) << group.status().message();
  return std::move(*group);
}

double Took(const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(NcclGroupTest, CollectivesAreQueuedAndWaitedFor) {
  FakeNccl fake;
  fake.state().join = kNcclInProgress;
  {
    const std::unique_ptr<NcclGroup> group = Joined(fake, Quick());
    EXPECT_EQ(fake.state().config.blocking, 0);
    EXPECT_EQ(fake.state().config.size, 20U);
    FakeStream stream;
    int value = 0;
    fake.state().queue = kNcclInProgress;
    ASSERT_TRUE(group->AllReduce(&value, &value, 1, NcclType::kFloat32, stream).ok());
    ASSERT_TRUE(group->ReduceScatter(&value, &value, 2, NcclType::kFloat32, stream).ok());
    ASSERT_TRUE(group->AllGather(&value, &value, 3, NcclType::kBfloat16, stream).ok());
    ASSERT_TRUE(group->Broadcast(&value, &value, 4, NcclType::kUint8, 1, stream).ok());
    ASSERT_TRUE(group->Wait(stream).ok());
    ASSERT_EQ(fake.state().sent.size(), 4U);
    EXPECT_EQ(fake.state().sent[0].what, "all-reduce");
    EXPECT_EQ(fake.state().sent[2].type, 9);
    EXPECT_EQ(fake.state().sent[3].count, 4U);
    EXPECT_EQ(fake.state().sent[3].root, 1);
  }
  // NCCL's destruction would wait for the other members.
  EXPECT_EQ(fake.state().num_finalized, 1);
  EXPECT_EQ(fake.state().num_aborts, 1);
}

TEST(NcclGroupTest, MembersThatNeverComeEndTheJoinAtItsDeadline) {
  FakeNccl fake;
  fake.state().join = kNcclInProgress;
  fake.state().settles = kNcclInProgress;
  Status status;
  EXPECT_LT(Took([&] { status = NcclGroup::Join(fake.calls(), {}, Quick()).status(); }), 5.0);
  EXPECT_EQ(status.message(), "NCCL join, member 1 of 2: not done after 60 ms");
  EXPECT_EQ(fake.state().num_aborts, 1);
}

TEST(NcclGroupTest, AnErrorOfTheJoinHasTheReason) {
  FakeNccl fake;
  fake.state().join = 5;
  const Status status = NcclGroup::Join(fake.calls(), {}, Quick()).status();
  EXPECT_EQ(status.message(), "NCCL join, member 1 of 2: some error (socketProgress: closed)");
}

TEST(NcclGroupTest, AStreamThatNeverEndsIsAbortedAtTheDeadline) {
  FakeNccl fake;
  const std::unique_ptr<NcclGroup> group = Joined(fake, Quick());
  FakeStream stream(kNever);
  int value = 0;
  ASSERT_TRUE(group->Broadcast(&value, &value, 1, NcclType::kUint8, 0, stream).ok());
  Status status;
  EXPECT_LT(Took([&] { status = group->Wait(stream); }), 5.0);
  EXPECT_EQ(status.message(), "NCCL wait, member 1 of 2: not done after 60 ms");
  EXPECT_EQ(fake.state().num_aborts, 1);
  // Later calls do not reach NCCL.
  const size_t num_sent = fake.state().sent.size();
  EXPECT_EQ(group->AllReduce(&value, &value, 1, NcclType::kFloat32, stream).message(),
            status.message());
  EXPECT_EQ(group->failure().message(), status.message());
  EXPECT_EQ(fake.state().sent.size(), num_sent);
}

TEST(NcclGroupTest, ACollectiveThatIsNeverQueuedIsAbortedAtTheDeadline) {
  FakeNccl fake;
  const std::unique_ptr<NcclGroup> group = Joined(fake, Quick());
  fake.state().queue = kNcclInProgress;
  fake.state().settles = kNcclInProgress;
  FakeStream stream;
  int value = 0;
  const Status status = group->AllReduce(&value, &value, 1, NcclType::kFloat32, stream);
  EXPECT_EQ(status.message(), "NCCL all-reduce, member 1 of 2: not done after 60 ms");
  EXPECT_EQ(fake.state().num_aborts, 1);
}

TEST(NcclGroupTest, AnErrorOfAnotherMemberEndsTheWaitAlsoWhenTheStreamIsIdle) {
  for (const int num_busy : {0, kNever}) {
    FakeNccl fake;
    const std::unique_ptr<NcclGroup> group = Joined(fake, Quick());
    FakeStream stream(num_busy);
    fake.state().pending = 0;
    fake.state().async = kRemoteError;
    EXPECT_NE(group->Wait(stream).message().find("remote process exited"), std::string::npos);
    EXPECT_EQ(fake.state().num_aborts, 1);
  }
}

TEST(NcclGroupTest, AFaultOfTheGpuEndsTheWait) {
  FakeNccl fake;
  const std::unique_ptr<NcclGroup> group = Joined(fake, Quick());
  FakeStream stream(kNever);
  stream.Break();
  EXPECT_NE(group->Wait(stream).message().find("illegal memory access"), std::string::npos);
  EXPECT_EQ(fake.state().num_aborts, 1);
}

TEST(NcclGroupTest, ALostMemberEndsTheWaitLongBeforeTheDeadline) {
  FakeNccl fake;
  NcclGroup::Options options = Quick();
  options.collective = std::chrono::hours(1);
  int num_asked = 0;
  options.lost = [&] { return ++num_asked > 10 ? Unavailable("rank 0 is gone") : Status::Ok(); };
  const std::unique_ptr<NcclGroup> group = Joined(fake, options);
  FakeStream stream(kNever);
  Status status;
  EXPECT_LT(Took([&] { status = group->Wait(stream); }), 5.0);
  EXPECT_EQ(status.message(), "rank 0 is gone");
  EXPECT_EQ(fake.state().num_aborts, 1);
}

TEST(NcclGroupTest, AnAbortThatBlocksDoesNotBlockTheCaller) {
  FakeNccl fake;
  const std::unique_ptr<NcclGroup> group = Joined(fake, Quick());
  fake.state().abort_blocks = true;
  FakeStream stream(kNever);
  EXPECT_LT(Took([&] { EXPECT_FALSE(group->Wait(stream).ok()); }), 5.0);
  EXPECT_EQ(fake.state().num_aborted, 0);
}

TEST(NcclGroupTest, OthersThatDoNotLeaveAreNotWaitedForLong) {
  FakeNccl fake;
  fake.state().finishes = false;
  EXPECT_LT(Took([&] { Joined(fake, Quick()).reset(); }), 10.0);
  EXPECT_EQ(fake.state().num_finalized, 1);
  EXPECT_EQ(fake.state().num_aborts, 1);
}

TEST(NcclLibraryTest, AMachineWithoutTheLibraryGivesOneLine) {
  const Result<const NcclCalls*> calls = LoadNccl();
  if (calls.ok()) {
    int version = 0;
    EXPECT_EQ((*calls)->get_version(&version), kNcclSuccess);
    EXPECT_GE(version, 21400);
    return;
  }
  EXPECT_NE(calls.status().message().find("libnccl.so.2: cannot be loaded"), std::string::npos);
  EXPECT_EQ(calls.status().message().find('\n'), std::string::npos);
}

TEST(NcclLibraryTest, VersionsAreWrittenAsTheirReleasesAre) {
  EXPECT_EQ(NcclVersionText(22809), "2.28.9");
  EXPECT_EQ(NcclVersionText(23007), "2.30.7");
}

}  // namespace
}  // namespace pace
