#include "engines/remote_worker.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "engines/fake_server.h"
#include "engines/remote_world.h"
#include "http/server.h"

namespace pace {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How many servers are paused.
struct PauseCount {
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
};

// A FakeServer behind real sockets.
class FakeHttpServer {
 public:
  explicit FakeHttpServer(int64_t port = 0, FakeServer::Kind kind = FakeServer::Kind::kVllm)
      : fake_(kind) {
    HttpServerOptions options;
    options.port = port;
    Result<std::unique_ptr<HttpServer>> started = HttpServer::Start(
        options, [this](const HttpMessage& request, const Cancellation& cancellation) {
          return Handle(request, cancellation);
        });
    EXPECT_TRUE(started.ok()) << started.status().message();
    server_ = std::move(started).value();
    stepper_ = std::thread([this] {
      while (!stop_) {
        {
          const MutexLock lock(mutex_);
          if (!frozen_) fake_.Step();
          Collect();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  ~FakeHttpServer() {
    server_.reset();
    stop_ = true;
    stepper_.join();
  }

  int64_t port() const { return server_->port(); }
  const Dialect& dialect() {
    const MutexLock lock(mutex_);
    return fake_.dialect();
  }
  std::string url() const { return Concat("http://127.0.0.1:", port()); }
  void Freeze() { frozen_ = true; }
  void CountPauses(PauseCount& count) {
    const MutexLock lock(mutex_);
    pauses_ = &count;
  }
  // Our end of the channel: waits for the server's workers, until `cancelled`.
  bool Meet(const std::atomic<bool>& cancelled) {
    while (!cancelled) {
      {
        const MutexLock lock(mutex_);
        if (fake_.waits_for_channel()) {
          fake_.MeetOnChannel();
          Collect();
          return true;
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return false;
  }
  void SetLabel(const std::string& label) {
    const MutexLock lock(mutex_);
    fake_.label = label;
  }
  std::string token_seen() {
    const MutexLock lock(mutex_);
    return token_;
  }

 private:
  HttpResponse Handle(const HttpMessage& request, const Cancellation& cancellation) {
    int64_t call = 0;
    {
      const MutexLock lock(mutex_);
      call = next_++;
      token_ = std::string(request.Header("authorization"));
      if (pauses_ != nullptr) Count(request.target);
      fake_.Receive(call,
                    {.method = request.method, .target = request.target, .body = request.body});
      Collect();
    }
    pollfd gone{cancellation.descriptor, cancellation.events, 0};
    while (::poll(&gone, 1, 0) == 0) {
      {
        const MutexLock lock(mutex_);
        const auto found = answers_.find(call);
        if (found != answers_.end()) return {found->second.status, found->second.body};
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return {};
  }
  void Count(std::string_view target) PACE_REQUIRES(mutex_) {
    if (target == "/resume") --pauses_->now;
    if (!target.starts_with("/pause")) return;
    const int now = ++pauses_->now;
    for (int seen = pauses_->most; seen < now;) {
      if (pauses_->most.compare_exchange_weak(seen, now)) break;
    }
  }
  void Collect() PACE_REQUIRES(mutex_) {
    for (FakeServer::Answer& answer : fake_.TakeAnswers()) {
      answers_[answer.call] = std::move(answer.answer);
    }
  }

  Mutex mutex_;
  FakeServer fake_ PACE_GUARDED_BY(mutex_);
  std::map<int64_t, ServerAnswer> answers_ PACE_GUARDED_BY(mutex_);
  int64_t next_ PACE_GUARDED_BY(mutex_) = 1;
  std::string token_ PACE_GUARDED_BY(mutex_);
  PauseCount* pauses_ PACE_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> frozen_ = false;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<HttpServer> server_;
  std::thread stepper_;
};

RemoteWorkerOptions OptionsFor(const FakeHttpServer& server) {
  RemoteWorkerOptions options;
  options.server.url = server.url();
  options.core = WorldOptions();
  return options;
}

// The next event, which must be of this kind.
template <typename T>
T Next(RemoteWorker& worker, std::vector<RolloutEvent>& rest) {
  const auto deadline = SteadyClock::now() + std::chrono::seconds(60);
  while (SteadyClock::now() < deadline) {
    for (size_t i = 0; i < rest.size(); ++i) {
      if (auto* typed = std::get_if<T>(&rest[i])) {
        T found = std::move(*typed);
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        return found;
      }
    }
    for (RolloutEvent& event : worker.Wait(SteadyClock::now() + std::chrono::seconds(1))) {
      rest.push_back(std::move(event));
    }
  }
  ADD_FAILURE() << "the event never came";
  return T{};
}

PublishedWeights Version(int64_t step) {
  return {.version = PolicyVersion(step), .folder = Concat("/weights/v", step)};
}

TEST(RemoteWorkerTest, GeneratesOverSocketsThroughASync) {
  FakeHttpServer server;
  RemoteWorkerOptions options = OptionsFor(server);
  options.server.token = "secret";
  RemoteWorker worker(options);
  std::vector<RolloutEvent> events;
  Next<WorkerReady>(worker, events);
  EXPECT_EQ(server.token_seen(), "Bearer secret");
  ASSERT_TRUE(worker.Sync(Version(0)).ok());
  EXPECT_FALSE(worker.Sync(Version(0)).ok());
  Next<WeightsSynced>(worker, events);
  const GroupRequest request = WorldRequest(1, 8, 400);
  worker.Submit(request);
  ASSERT_TRUE(worker.Sync(Version(1)).ok());
  Next<WeightsSynced>(worker, events);
  for (int i = 0; i < 8; ++i) {
    const FinishedResponse done = Next<FinishedResponse>(worker, events);
    EXPECT_TRUE(IsTrue(request, done.response));
  }
  EXPECT_GT(worker.stats().num_sampled_tokens, 0);
}

// Ends when the server's workers are there. Counts what it is asked for.
class FakeChannel final : public WeightChannel {
 public:
  struct Counts {
    std::atomic<int> num_opened = 0;
    std::atomic<int> num_sent = 0;
    std::atomic<bool> hangs = false;  // in Send
  };
  FakeChannel(FakeHttpServer& server, Counts& counts) : server_(server), counts_(counts) {
    ++counts_.num_opened;
  }
  ChannelInvitation Invitation() const override {
    return {.group = "pace-1", .address = "127.0.0.1", .buffer_bytes = kBufferBytes};
  }
  // SGLang's workers come with their first broadcast.
  Status Join() override { return &server_.dialect() == &VllmDialect() ? Meet() : Status::Ok(); }
  Status Send(const WeightSet&, std::span<const WeightChunk>) override {
    while (counts_.hangs && !cancelled_) std::this_thread::yield();
    PACE_RETURN_IF_ERROR(Meet());
    ++counts_.num_sent;
    return Status::Ok();
  }
  void Cancel() override { cancelled_ = true; }

 private:
  Status Meet() {
    return server_.Meet(cancelled_) ? Status::Ok() : Unavailable("the transfer was given up");
  }
  FakeHttpServer& server_;
  Counts& counts_;
  std::atomic<bool> cancelled_ = false;
};

PublishedWeights Sent(int64_t version) {
  return {.version = PolicyVersion(version), .weights = WorldWeights(version).weights};
}

RemoteWorkerOptions ChannelOptionsFor(FakeHttpServer& server, FakeChannel::Counts& counts) {
  RemoteWorkerOptions options = OptionsFor(server);
  options.dialect = &server.dialect();
  options.core.weights = WeightPath::kChannel;
  options.open_channel = [&](const ChannelPeer& peer) -> Result<std::unique_ptr<WeightChannel>> {
    EXPECT_EQ(peer.our_address, "127.0.0.1");
    return std::unique_ptr<WeightChannel>(new FakeChannel(server, counts));
  };
  return options;
}

TEST(RemoteWorkerTest, SendsWeightsOverAChannelWhileResponsesRun) {
  for (const FakeServer::Kind kind : {FakeServer::Kind::kVllm, FakeServer::Kind::kSglang}) {
    FakeHttpServer server(0, kind);
    FakeChannel::Counts counts;
    RemoteWorker worker(ChannelOptionsFor(server, counts));
    std::vector<RolloutEvent> events;
    const GroupRequest request = WorldRequest(1, 8, 400);
    worker.Submit(request);
    for (int64_t step = 0; step < 5; ++step) {
      ASSERT_TRUE(worker.Sync(Sent(step)).ok());
      EXPECT_EQ(Next<WeightsSynced>(worker, events).version, PolicyVersion(step));
    }
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(IsTrue(request, Next<FinishedResponse>(worker, events).response));
    }
    EXPECT_EQ(counts.num_opened, 1);
    EXPECT_EQ(counts.num_sent, kind == FakeServer::Kind::kVllm ? 5 : 15) << "buckets";
  }
}

// Neither the end of the worker nor that of the server waits for a transfer that hangs.
TEST(RemoteWorkerTest, ATransferThatHangsEndsWithTheWorkerOrTheServer) {
  FakeChannel::Counts counts;
  counts.hangs = true;
  {
    FakeHttpServer server;
    RemoteWorker worker(ChannelOptionsFor(server, counts));
    std::vector<RolloutEvent> events;
    Next<WorkerReady>(worker, events);
    ASSERT_TRUE(worker.Sync(Sent(0)).ok());
    EXPECT_TRUE(worker.Wait(SteadyClock::now() + std::chrono::milliseconds(50)).empty());
  }
  FakeHttpServer server;
  RemoteWorkerOptions options = ChannelOptionsFor(server, counts);
  options.core.load_deadline = Seconds(1);
  RemoteWorker worker(options);
  std::vector<RolloutEvent> events;
  ASSERT_TRUE(worker.Sync(Sent(0)).ok());
  EXPECT_EQ(Next<WorkerGone>(worker, events).loss, Loss::kLost);
}

TEST(RemoteWorkerTest, AChannelThatCannotBeOpenedLosesTheWorker) {
  FakeHttpServer server;
  RemoteWorkerOptions options = OptionsFor(server);
  options.core.weights = WeightPath::kChannel;
  options.open_channel = [](const ChannelPeer&) -> Result<std::unique_ptr<WeightChannel>> {
    return Unavailable("libnccl.so.2 is missing");
  };
  RemoteWorker worker(options);
  std::vector<RolloutEvent> events;
  ASSERT_TRUE(worker.Sync(Sent(0)).ok());
  EXPECT_NE(Next<WorkerGone>(worker, events).error.message().find("libnccl.so.2 is missing"),
            std::string::npos);
}

TEST(RemoteWorkerTest, AtMostHalfOfTheServersOfARunArePaused) {
  constexpr size_t kServers = 4;
  PauseCount count;
  std::vector<std::unique_ptr<FakeHttpServer>> servers;
  const auto turns = std::make_shared<PauseTurns>();
  std::vector<std::unique_ptr<RemoteWorker>> workers;
  std::vector<RolloutEvent> events[kServers];
  for (size_t i = 0; i < kServers; ++i) {
    servers.push_back(std::make_unique<FakeHttpServer>());
    RemoteWorkerOptions options = OptionsFor(*servers[i]);
    options.core.pauses_in_turn = true;
    options.turns = turns;
    workers.push_back(std::make_unique<RemoteWorker>(options));
    GroupRequest request = WorldRequest(1, 4, 100000);
    request.stop.stop_tokens = {};
    workers[i]->Submit(request);
    ASSERT_TRUE(workers[i]->Sync(Version(0)).ok());
    Next<WeightsSynced>(*workers[i], events[i]);
    servers[i]->CountPauses(count);
  }
  for (int64_t step = 1; step < 8; ++step) {
    for (const auto& worker : workers) ASSERT_TRUE(worker->Sync(Version(step)).ok());
    for (size_t i = 0; i < kServers; ++i) {
      EXPECT_EQ(Next<WeightsSynced>(*workers[i], events[i]).version, PolicyVersion(step));
    }
  }
  EXPECT_GE(count.most, 1);
  EXPECT_LE(count.most, 2);
}

TEST(RemoteWorkerTest, PausesForACheckpointAndHandsGroupsOver) {
  FakeHttpServer server;
  RemoteWorker worker(OptionsFor(server));
  std::vector<RolloutEvent> events;
  ASSERT_TRUE(worker.Sync(Version(0)).ok());
  Next<WeightsSynced>(worker, events);
  GroupRequest request = WorldRequest(1, 4, 100000);
  request.stop.stop_tokens = {};
  worker.Submit(request);
  const std::vector<GroupRequest> unfinished = worker.Pause();
  ASSERT_EQ(unfinished.size(), 1U);
  EXPECT_EQ(unfinished[0].members.size(), 4U);
  worker.Resume();
  const std::optional<GroupRequest> taken = worker.Take(GroupId(1));
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->members.size(), 4U);
  EXPECT_FALSE(worker.Take(GroupId(1)).has_value());
}

TEST(RemoteWorkerTest, NobodyThereIsSaidAtOnce) {
  int64_t port = 0;
  {
    FakeHttpServer server;
    port = server.port();
  }
  RemoteWorkerOptions options;
  options.server.url = Concat("http://127.0.0.1:", port);
  options.core = WorldOptions();
  RemoteWorker worker(options);
  std::vector<RolloutEvent> events;
  const WorkerGone gone = Next<WorkerGone>(worker, events);
  EXPECT_EQ(gone.loss, Loss::kLost);
  EXPECT_TRUE(gone.error.message().starts_with(options.server.url)) << gone.error.message();
  EXPECT_FALSE(worker.Sync(Version(0)).ok());
  EXPECT_TRUE(worker.Pause().empty());
}

TEST(RemoteWorkerTest, AServerThatEndsOrHangsIsLost) {
  auto server = std::make_unique<FakeHttpServer>();
  RemoteWorkerOptions options = OptionsFor(*server);
  options.core.generate_deadline = Seconds(1);
  RemoteWorker hanging(options);
  std::vector<RolloutEvent> events;
  ASSERT_TRUE(hanging.Sync(Version(0)).ok());
  Next<WeightsSynced>(hanging, events);
  server->Freeze();
  hanging.Submit(WorldRequest(1, 1, 10));
  EXPECT_NE(Next<WorkerGone>(hanging, events).error.message().find("imed out"), std::string::npos);

  auto second = std::make_unique<FakeHttpServer>();
  RemoteWorker ending(OptionsFor(*second));
  events.clear();
  ASSERT_TRUE(ending.Sync(Version(0)).ok());
  Next<WeightsSynced>(ending, events);
  GroupRequest request = WorldRequest(1, 1, 100000);
  request.stop.stop_tokens = {};
  ending.Submit(request);
  second.reset();
  EXPECT_EQ(Next<WorkerGone>(ending, events).loss, Loss::kLost);
}

}  // namespace
}  // namespace pace
