// RemoteCore and an SGLang server that gets its weights over a channel.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engines/remote_world.h"

namespace pace {
namespace {

RemoteOptions ChannelOptions() {
  RemoteOptions options = WorldOptions();
  options.weights = WeightPath::kChannel;
  return options;
}

class SglangWorld : public RemoteWorld {
 public:
  SglangWorld() : RemoteWorld(ChannelOptions(), FakeServer::Kind::kSglang) {}

  void SyncTo(int64_t version) {
    if (!core.joined()) core.Join();
    ASSERT_TRUE(core.Sync(WorldWeights(version)).ok());
    Settle();
  }
  // Until the server is called at this route; the call waits in calls[0].
  void RunTo(const std::string& target) {
    core.Join();
    ASSERT_TRUE(core.Sync(WorldWeights(0)).ok());
    Collect();
    for (int i = 0; i < 100; ++i) {
      if (!calls.empty() && calls[0].http.target == target) return;
      if (!calls.empty()) {
        DeliverCall(0);
      } else if (!answers.empty()) {
        DeliverAnswer(0);
      } else if (!met.empty()) {
        SayMet();
      }
    }
    FAIL() << "no call to " << target;
  }
  WorkerGone Gone() {
    const std::vector<WorkerGone> gone = Take<WorkerGone>();
    EXPECT_EQ(gone.size(), 1U);
    return gone.empty() ? WorkerGone{} : gone.front();
  }
};

std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  const ServerWeights all = WorldWeights(0);
  for (const auto& [name, view] : all.weights.views()) names.push_back(name);
  return names;
}

TEST(SglangChannelTest, WeightsComeInBucketsWithinASession) {
  SglangWorld world;
  world.server.num_workers = 4;
  for (int64_t version = 0; version < 3; ++version) {
    world.SyncTo(version);
    EXPECT_EQ(world.Take<WeightsSynced>().size(), 1U);
    EXPECT_EQ(world.server.label, Concat("run:", version));
    EXPECT_EQ(world.server.received, AllNames());
    EXPECT_EQ(world.server.num_loads, version + 1);
    EXPECT_FALSE(world.server.session_open);
  }
  EXPECT_EQ(world.server.num_buckets, 9);
  EXPECT_EQ(world.num_sent, 3 * AllNames().size());
  EXPECT_EQ(world.num_channels, 1);
  EXPECT_EQ(world.num_workers, 4);
}

TEST(SglangChannelTest, ASessionThatWasLeftOpenIsClosedFirst) {
  SglangWorld world;
  world.server.session_open = true;
  world.SyncTo(0);
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 1U);
  EXPECT_EQ(world.server.received, AllNames());
}

TEST(SglangChannelTest, ABucketIsDoneWhenTheServerAndTheChannelSaySo) {
  for (const bool server_first : {true, false}) {
    SglangWorld world;
    world.meets = false;
    world.SyncTo(0);
    ASSERT_TRUE(world.Meet());
    if (server_first) {
      while (!world.answers.empty()) world.DeliverAnswer(0);
    } else {
      world.SayMet();
    }
    EXPECT_TRUE(world.calls.empty() && world.transfers.empty()) << "the next bucket waits";
    world.meets = true;
    world.Settle();
    EXPECT_EQ(world.Take<WeightsSynced>().size(), 1U);
    EXPECT_EQ(world.server.received, AllNames());
  }
}

TEST(SglangChannelTest, ABucketThatIsRefusedLosesTheWorkerAndIsNeverResumed) {
  SglangWorld world;
  world.meets = false;
  world.RunTo("/update_weights_from_distributed");
  ASSERT_EQ(world.transfers.size(), 1U);
  world.core.Answered(world.calls[0].call,
                      {400, R"({"success":false,"message":"Failed to receive weights: x"})"});
  world.Collect();
  const WorkerGone gone = world.Gone();
  EXPECT_EQ(gone.loss, Loss::kLost);
  EXPECT_EQ(gone.error.message(),
            "an update of its weights was answered 400: Failed to receive weights: x");
  EXPECT_TRUE(world.Take<WeightsSynced>().empty());
  EXPECT_EQ(world.server.label, "default");
  world.core.CheckInvariants();
}

TEST(SglangChannelTest, OnlyTheFirstEndOfASessionMayBeRefused) {
  SglangWorld world;
  world.meets = false;
  world.RunTo("/begin_weight_update");
  world.core.Answered(world.calls[0].call, {400, R"({"message":"a session is already open"})"});
  world.Collect();
  EXPECT_EQ(world.Gone().error.message(),
            "an update of its weights was answered 400: a session is already open");
}

TEST(SglangChannelTest, AnAddressThatWorkersCannotReachIsNamed) {
  for (const bool answers : {true, false}) {
    SglangWorld world;
    world.RunTo("/init_weights_update_group");
    const int64_t call = world.calls[0].call;
    if (answers) {
      world.core.Answered(call, {400, R"({"message":"Failed to initialize: refused."})"});
    } else {
      world.core.Failed(call, Unavailable("Timeout was reached"));
    }
    world.Collect();
    EXPECT_EQ(world.Gone().error.message(),
              Concat("the weight channel (workers call 10.0.0.1 port 29500, as "
                     "engine.transfer_address and engine.transfer_port say)",
                     answers ? " was answered 400: Failed to initialize: refused."
                             : ": Timeout was reached"));
  }
}

TEST(SglangChannelTest, AServerWithReplicasIsRefusedWhenItJoins) {
  SglangWorld world;
  world.server.num_replicas = 2;
  world.core.Join();
  world.Settle();
  const WorkerGone gone = world.Gone();
  EXPECT_EQ(gone.loss, Loss::kUnfit);
  EXPECT_EQ(gone.error.message(),
            "engine.transfer = nccl: the server's dp_size = 2: must be 1 (SGLang receives weights "
            "over NCCL with tensor parallelism alone)");
  RemoteWorld by_folder(WorldOptions(), FakeServer::Kind::kSglang);
  by_folder.server.num_replicas = 2;
  by_folder.core.Join();
  by_folder.Settle();
  EXPECT_EQ(by_folder.Take<WorkerReady>().size(), 1U);
}

}  // namespace
}  // namespace pace
