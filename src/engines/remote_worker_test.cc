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

// A FakeServer behind real sockets.
class FakeHttpServer {
 public:
  explicit FakeHttpServer(int64_t port = 0) {
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
  std::string url() const { return Concat("http://127.0.0.1:", port()); }
  void Freeze() { frozen_ = true; }
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
