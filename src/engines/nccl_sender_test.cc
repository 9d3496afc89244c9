#include "engines/nccl_sender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engines/nccl_channel.h"
#include "model/tiny_configs.h"
#include "nccl/fake_nccl.h"

namespace pace {
namespace {

using std::chrono::milliseconds;

// Host memory; copies are done at once.
class FakeGpu final : public TransferGpu {
 public:
  explicit FakeGpu(int num_busy) : stream_(num_busy) {}
  void* handle() const override { return nullptr; }
  Result<bool> IsIdle() override { return stream_.IsIdle(); }
  Result<void*> Buffer(size_t num_bytes) override {
    if (buffer_.size() < num_bytes) buffer_.resize(num_bytes);
    return buffer_.data();
  }
  Status Copy(void* to, const void* from, size_t num_bytes) override {
    std::memcpy(to, from, num_bytes);
    return Status::Ok();
  }

 private:
  FakeStream stream_;
  std::string buffer_;
};

NcclSender::Gpus FakeGpus(int num_busy = 0) {
  return {std::make_unique<FakeGpu>(num_busy), std::make_unique<FakeGpu>(num_busy)};
}

std::unique_ptr<NcclSender> SenderOf(const FakeNccl& fake, const NcclSenderOptions& options,
                                     int num_busy = 0) {
  const Result<NcclInvitation> invitation = NcclInvitation::Make(fake.calls(), options);
  EXPECT_TRUE(invitation.ok());
  Result<std::unique_ptr<NcclSender>> sender =
      NcclSender::Join(fake.calls(), FakeGpus(num_busy), *invitation);
  EXPECT_TRUE(sender.ok()) << sender.status().message();
  return std::move(*sender);
}

std::string BytesOf(const WeightSet& weights) {
  std::string all;
  for (const auto& [name, view] : weights.views()) {
    all.append(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  }
  return all;
}

WeightSet Weights() {
  return RandomWeights(TinyModel(Architecture::kQwen3), 5);
}

std::vector<WeightChunk> All(const WeightSet& weights, int64_t buffer = int64_t{1} << 30) {
  return ChunksOf(weights, buffer);
}

TEST(NcclSenderTest, AChannelInvitesJoinsSendsAndCanBeCancelled) {
  FakeNccl fake;
  Result<std::unique_ptr<WeightChannel>> channel =
      OpenNcclChannel(fake.calls(), FakeGpus(), {.num_workers = 2, .buffer_bytes = 5000});
  ASSERT_TRUE(channel.ok());
  const ChannelInvitation invitation = (*channel)->Invitation();
  EXPECT_EQ(invitation.num_workers, 2);
  EXPECT_EQ(invitation.id, std::string(128, 'i'));
  EXPECT_EQ(invitation.buffer_bytes, 5000);
  EXPECT_EQ(invitation.address, "");
  ASSERT_TRUE((*channel)->Join().ok());
  ASSERT_EQ(fake.state().sent.size(), 1U);
  const WeightSet weights = Weights();
  ASSERT_TRUE((*channel)->Send(weights, All(weights)).ok());
  fake.state().queue = fake.state().settles = kNcclInProgress;
  (*channel)->Cancel();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE((*channel)->Send(weights, All(weights)).message().find("given up"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(fake.state().num_aborts, 1);
}

// What workers of SGLang read.
class FakeMeeting {
 public:
  GroupMeeting meeting() {
    return {.address = "10.0.0.1",
            .port = 29500,
            .put =
                [this](const std::string& key, const std::string& value) {
                  values[key] = value;
                  return status;
                },
            .remove = [this](const std::string& key) { values.erase(key); }};
  }
  Status status = {};
  std::map<std::string, std::string> values = {};
};

TEST(NcclSenderTest, WorkersOfAProcessGroupFindTheIdAndJoinInTheirFirstBroadcast) {
  const WeightSet weights = Weights();
  const std::vector<WeightChunk> buckets = BucketsOf(weights, 20'000);
  ASSERT_EQ(buckets.size(), 3U);
  FakeNccl fake;
  FakeMeeting meeting;
  {
    const Result<std::unique_ptr<WeightChannel>> channel =
        OpenNcclChannel(fake.calls(), FakeGpus(), {.num_workers = 4}, meeting.meeting());
    ASSERT_TRUE(channel.ok());
    const ChannelInvitation invitation = (*channel)->Invitation();
    EXPECT_EQ(invitation.address, "10.0.0.1");
    EXPECT_EQ(invitation.port, 29500);
    const std::string key = Concat(invitation.group, "/", invitation.group, "//cuda//0");
    EXPECT_EQ(meeting.values, (std::map<std::string, std::string>{{key, std::string(128, 'i')}}));
    // The server answers before NCCL's group exists, so Join returns without its workers.
    fake.state().join = fake.state().settles = kNcclInProgress;
    ASSERT_TRUE((*channel)->Join().ok());
    fake.state().join = fake.state().settles = kNcclSuccess;
    std::string sent;
    for (const WeightChunk& bucket : buckets) {
      ASSERT_TRUE((*channel)->Send(weights, std::span(&bucket, 1)).ok());
      const FakeNccl::Sent& last = fake.state().sent.back();
      EXPECT_EQ(last.what, "broadcast");
      EXPECT_EQ(last.type, 1);
      EXPECT_EQ(last.count, static_cast<size_t>(bucket.num_bytes));
      sent += last.bytes;
    }
    EXPECT_EQ(fake.state().sent.size(), buckets.size()) << "no all-reduce, a broadcast per bucket";
    EXPECT_EQ(sent, BytesOf(weights));
  }
  EXPECT_TRUE(meeting.values.empty());
}

TEST(NcclSenderTest, EveryChannelHasAGroupOfItsOwn) {
  FakeNccl fake;
  FakeMeeting meeting;
  const auto one = OpenNcclChannel(fake.calls(), FakeGpus(), {}, meeting.meeting());
  const auto other = OpenNcclChannel(fake.calls(), FakeGpus(), {}, meeting.meeting());
  EXPECT_NE((*one)->Invitation().group, (*other)->Invitation().group);
  meeting.status = Unavailable("the store is gone");
  EXPECT_EQ(OpenNcclChannel(fake.calls(), FakeGpus(), {}, meeting.meeting()).status().message(),
            "the store is gone");
}

TEST(NcclSenderTest, WorkersOfAProcessGroupThatNeverBroadcastEndTheSendAtItsDeadline) {
  FakeNccl fake;
  FakeMeeting meeting;
  fake.state().join = fake.state().settles = kNcclInProgress;
  const auto channel =
      OpenNcclChannel(fake.calls(), FakeGpus(), {.join = milliseconds(50)}, meeting.meeting());
  ASSERT_TRUE((*channel)->Join().ok());
  const WeightSet weights = Weights();
  const Status status = (*channel)->Send(weights, All(weights));
  EXPECT_NE(status.message().find("not done after 50 ms"), std::string::npos);
  EXPECT_EQ(fake.state().num_aborts, 1);
  EXPECT_EQ((*channel)->Send(weights, All(weights)).message(), status.message());
}

TEST(NcclSenderTest, TheFirstCallIsTheWorkersAllReduce) {
  FakeNccl fake;
  const std::unique_ptr<NcclSender> sender = SenderOf(fake, {});
  ASSERT_EQ(fake.state().sent.size(), 1U);
  EXPECT_EQ(fake.state().sent[0].what, "all-reduce");
  EXPECT_EQ(fake.state().sent[0].count, 1U);
  EXPECT_EQ(fake.state().sent[0].type, 7);
}

TEST(NcclSenderTest, UnpackedIsOneBroadcastForEachTensor) {
  FakeNccl fake;
  const WeightSet weights = Weights();
  const std::unique_ptr<NcclSender> sender = SenderOf(fake, {.packed = false});
  ASSERT_TRUE(sender->Send(weights, All(weights)).ok());
  ASSERT_EQ(fake.state().sent.size(), 1 + weights.views().size());
  std::string sent;
  for (size_t i = 1; i < fake.state().sent.size(); ++i) {
    EXPECT_EQ(fake.state().sent[i].what, "broadcast");
    EXPECT_EQ(fake.state().sent[i].type, 7);
    EXPECT_EQ(fake.state().sent[i].root, 0);
    sent += fake.state().sent[i].bytes;
  }
  EXPECT_EQ(sent, BytesOf(weights));
}

TEST(NcclSenderTest, PackedIsOneBroadcastForEachChunk) {
  const WeightSet weights = Weights();
  for (const int64_t buffer : {int64_t{1}, int64_t{5000}, int64_t{1} << 30}) {
    FakeNccl fake;
    const std::unique_ptr<NcclSender> sender =
        SenderOf(fake, {.packed = true, .buffer_bytes = buffer});
    ASSERT_TRUE(sender->Send(weights, All(weights, buffer)).ok());
    std::string sent;
    for (size_t i = 1; i < fake.state().sent.size(); ++i) {
      EXPECT_EQ(fake.state().sent[i].type, 1);
      sent += fake.state().sent[i].bytes;
    }
    EXPECT_EQ(sent, BytesOf(weights));
    const size_t num_chunks = fake.state().sent.size() - 1;
    EXPECT_EQ(num_chunks == weights.views().size(), buffer == 1);
    EXPECT_EQ(num_chunks == 1, buffer == int64_t{1} << 30);
  }
}

// To NcclSender, device memory is memory that broadcasts can read.
WeightSet OnDevice(const WeightSet& weights) {
  return *WeightSet::Create(TinyModel(Architecture::kQwen3), weights.views(),
                            std::make_shared<WeightSet>(weights), Residence::kDevice);
}

TEST(NcclSenderTest, ATensorOnTheGpuThatIsAChunkByItselfIsNotCopied) {
  const WeightSet weights = OnDevice(Weights());
  for (const int64_t buffer : {int64_t{1}, int64_t{5000}}) {
    FakeNccl fake;
    const std::unique_ptr<NcclSender> sender =
        SenderOf(fake, {.packed = true, .buffer_bytes = buffer});
    ASSERT_TRUE(sender->Send(weights, All(weights, buffer)).ok());
    std::string sent;
    size_t num_in_place = 0;
    for (size_t i = 1; i < fake.state().sent.size(); ++i) {
      sent += fake.state().sent[i].bytes;
      num_in_place += std::ranges::any_of(weights.views(), [&](const auto& entry) {
        return entry.second.bytes.data() == fake.state().sent[i].from;
      });
    }
    EXPECT_EQ(sent, BytesOf(weights));
    EXPECT_GT(num_in_place, 0U);
    EXPECT_EQ(num_in_place == fake.state().sent.size() - 1, buffer == 1);
  }
}

TEST(NcclSenderTest, WorkersThatNeverJoinEndTheJoinAtItsDeadline) {
  FakeNccl fake;
  fake.state().join = kNcclInProgress;
  fake.state().settles = kNcclInProgress;
  const NcclInvitation invitation{.options = {.join = milliseconds(50)}};
  const Status status = NcclSender::Join(fake.calls(), FakeGpus(), invitation).status();
  EXPECT_NE(status.message().find("not done after 50 ms"), std::string::npos);
  EXPECT_EQ(fake.state().num_aborts, 1);
}

TEST(NcclSenderTest, AWorkerThatDiesInABroadcastFreesTheSenderAndTheNextEngineIsServed) {
  const WeightSet weights = Weights();
  FakeNccl fake;
  {
    const std::unique_ptr<NcclSender> sender =
        SenderOf(fake, {.packed = false, .deadline = milliseconds(100)});
    fake.state().queue = kNcclInProgress;
    fake.state().settles = kNcclInProgress;
    const auto start = std::chrono::steady_clock::now();
    const Status status = sender->Send(weights, All(weights));
    EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1100));
    EXPECT_NE(status.message().find("not done after 100 ms"), std::string::npos);
    EXPECT_EQ(fake.state().num_aborts, 1);
    EXPECT_EQ(sender->Send(weights, All(weights)).message(), status.message());
  }
  fake.state().queue = fake.state().settles = kNcclSuccess;
  EXPECT_TRUE(SenderOf(fake, {})->Send(weights, All(weights)).ok());
}

}  // namespace
}  // namespace pace
