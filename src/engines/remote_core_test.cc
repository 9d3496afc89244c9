#include "engines/remote_core.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engines/answer_check.h"
#include "engines/remote_world.h"

namespace pace {
namespace {

void Start(RemoteWorld& world) {
  world.core.Join();
  world.Settle();
  ASSERT_EQ(world.Take<WorkerReady>().size(), 1U);
  ASSERT_TRUE(world.core.Sync(WorldWeights(0)).ok());
  world.Settle();
  ASSERT_EQ(world.Take<WeightsSynced>().size(), 1U);
  EXPECT_EQ(world.server.label, "run:0");
}

WorkerGone GoneOf(RemoteWorld& world) {
  const std::vector<WorkerGone> gone = world.Take<WorkerGone>();
  EXPECT_EQ(gone.size(), 1U);
  return gone.empty() ? WorkerGone{} : gone.front();
}

TEST(RemoteCoreTest, GeneratesWhatTheServerSamples) {
  RemoteWorld world(WorldOptions());
  Start(world);
  const GroupRequest request = WorldRequest(1, 3, 20);
  world.core.Submit(request);
  world.RunDry();
  const std::vector<FinishedResponse> finished = world.Take<FinishedResponse>();
  ASSERT_EQ(finished.size(), 3U);
  for (const FinishedResponse& done : finished) {
    EXPECT_TRUE(IsTrue(request, done.response));
    const bool stopped = done.response.tokens.back().id == 0;
    EXPECT_EQ(done.reason, stopped ? FinishReason::kStopToken : FinishReason::kMaxTokens);
    EXPECT_EQ(done.response.num_interrupts, 0);
  }
  world.core.CheckInvariants();
}

TEST(RemoteCoreTest, ANetworkOfAnotherShapeIsRefusedWhenItJoins) {
  RemoteOptions options = WorldOptions();
  options.shape = {.vocabulary = FakeServer::kVocabulary, .hidden_size = 8, .num_layers = 3};
  RemoteWorld world(options);
  world.core.Join();
  world.Settle();
  const WorkerGone gone = GoneOf(world);
  EXPECT_EQ(gone.loss, Loss::kUnfit);
  EXPECT_EQ(gone.error.message(),
            "serves fake, a network of 2 layers of 8 for 50 tokens: must be the policy's, 3 layers "
            "of 8 for 50");
  EXPECT_EQ(world.server.num_loads, 0);
}

TEST(RemoteCoreTest, NothingIsSentBeforeTheFirstWeights) {
  RemoteWorld world(WorldOptions());
  world.core.Join();
  world.core.Submit(WorldRequest(1, 2, 5));
  world.Settle();
  EXPECT_EQ(world.server.num_running(), 0U);
  ASSERT_TRUE(world.core.Sync({PolicyVersion(3), "/weights/v3"}).ok());
  world.Settle();
  EXPECT_EQ(world.server.num_running(), 2U);
}

TEST(RemoteCoreTest, ASyncWithScoresEndsRequestsAndSendsThemAgain) {
  RemoteWorld world(WorldOptions());
  Start(world);
  GroupRequest request = WorldRequest(1, 1, 30);
  request.stop.stop_tokens = {};
  world.core.Submit(request);
  world.Settle();
  for (int i = 0; i < 6; ++i) world.StepServer();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.RunDry();
  const std::vector<FinishedResponse> finished = world.Take<FinishedResponse>();
  ASSERT_EQ(finished.size(), 1U);
  const PartialResponse& response = finished[0].response;
  ASSERT_EQ(response.tokens.size(), 30U);
  EXPECT_TRUE(IsTrue(request, response));
  EXPECT_EQ(response.tokens[5].version, PolicyVersion(0));
  EXPECT_EQ(response.tokens[6].version, PolicyVersion(1));
  EXPECT_EQ(response.num_interrupts, 1);
  double sum = 0;
  for (size_t i = 0; i < 6; ++i) {
    const float now =
        FakeServer::LogprobOf("run:1", static_cast<int64_t>(3 + i), response.tokens[i].id);
    sum += std::abs(static_cast<double>(now) - static_cast<double>(response.tokens[i].logprob));
  }
  ASSERT_TRUE(response.prefix_score.has_value());
  EXPECT_DOUBLE_EQ(*response.prefix_score, sum / 6);
  EXPECT_EQ(world.server.num_aborted, 1);
}

TEST(RemoteCoreTest, AShortPrefixIsNotScored) {
  RemoteWorld world(WorldOptions());
  Start(world);
  GroupRequest request = WorldRequest(1, 1, 30);
  request.stop.stop_tokens = {};
  world.core.Submit(request);
  world.Settle();
  for (int i = 0; i < 3; ++i) world.StepServer();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.RunDry();
  const std::vector<FinishedResponse> finished = world.Take<FinishedResponse>();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_FALSE(finished[0].response.prefix_score.has_value());
  EXPECT_EQ(finished[0].response.num_interrupts, 1);
}

TEST(RemoteCoreTest, WithoutScoresRequestsStayInTheServer) {
  for (const SyncMode mode : {SyncMode::kReprefill, SyncMode::kKeep}) {
    RemoteWorld world(WorldOptions(mode, /*scores=*/false));
    Start(world);
    GroupRequest request = WorldRequest(1, 1, 30);
    request.stop.stop_tokens = {};
    world.core.Submit(request);
    world.Settle();
    for (int i = 0; i < 6; ++i) world.StepServer();
    ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
    world.RunDry();
    const std::vector<FinishedResponse> finished = world.Take<FinishedResponse>();
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_TRUE(IsTrue(request, finished[0].response));
    EXPECT_EQ(finished[0].response.tokens[6].version, PolicyVersion(1));
    EXPECT_EQ(finished[0].response.num_interrupts, 1);
    EXPECT_EQ(world.server.num_aborted, 0);
  }
}

TEST(RemoteCoreTest, ADrainedSyncWaitsForWhatRuns) {
  RemoteWorld world(WorldOptions(SyncMode::kDrain, /*scores=*/false));
  Start(world);
  world.core.Submit(WorldRequest(1, 2, 30));
  world.Settle();
  for (int i = 0; i < 3; ++i) world.StepServer();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.core.Submit(WorldRequest(2, 1, 5));
  world.Settle();
  EXPECT_TRUE(world.Take<WeightsSynced>().empty());
  world.RunDry();
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 1U);
  for (const FinishedResponse& done : world.Take<FinishedResponse>()) {
    EXPECT_EQ(done.response.num_interrupts, 0);
    EXPECT_EQ(done.response.tokens.front().version.step(), done.id.group.value() - 1);
  }
}

TEST(RemoteCoreTest, CancellingReturnsWhatThereIs) {
  RemoteWorld world(WorldOptions());
  Start(world);
  GroupRequest request = WorldRequest(1, 2, 30);
  request.stop.stop_tokens = {};
  world.core.Submit(request);
  world.Settle();
  for (int i = 0; i < 5; ++i) world.StepServer();
  world.core.Cancel(GroupId(1));
  world.Settle();
  const std::vector<GroupCancelled> cancelled = world.Take<GroupCancelled>();
  ASSERT_EQ(cancelled.size(), 1U);
  ASSERT_EQ(cancelled[0].request.resumed.size(), 2U);
  EXPECT_EQ(cancelled[0].request.resumed[0].tokens.size(), 5U);
  EXPECT_EQ(world.server.num_running(), 0U);
  // It can go on, here or elsewhere.
  world.core.Submit(cancelled[0].request);
  world.RunDry();
  const std::vector<FinishedResponse> finished = world.Take<FinishedResponse>();
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(finished[0].response.tokens.size(), 30U);
  EXPECT_TRUE(IsTrue(request, finished[0].response));
}

TEST(RemoteCoreTest, HoldingGivesACopyAndReleasingGoesOn) {
  RemoteWorld world(WorldOptions());
  Start(world);
  GroupRequest request = WorldRequest(1, 2, 30);
  request.stop.stop_tokens = {};
  world.core.Submit(request);
  world.Settle();
  for (int i = 0; i < 5; ++i) world.StepServer();
  world.core.Hold();
  EXPECT_FALSE(world.core.held());
  world.Settle();
  ASSERT_TRUE(world.core.held());
  const std::vector<GroupRequest> unfinished = world.core.Unfinished();
  ASSERT_EQ(unfinished.size(), 1U);
  EXPECT_EQ(unfinished[0].resumed[1].tokens.size(), 5U);
  world.core.Release();
  world.RunDry();
  const std::vector<FinishedResponse> finished = world.Take<FinishedResponse>();
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(finished[0].response.num_interrupts, 0);
  EXPECT_TRUE(IsTrue(request, finished[0].response));
}

TEST(RemoteCoreTest, AResponseRestsAndContinuesAfterAToolsTokens) {
  RemoteWorld world(WorldOptions());
  Start(world);
  GroupRequest request = WorldRequest(1, 1, 400);
  request.stop.pauses = true;
  world.core.Submit(request);
  world.RunDry();
  std::vector<ResponsePaused> paused = world.Take<ResponsePaused>();
  ASSERT_EQ(paused.size(), 1U);
  const size_t length = paused[0].response.tokens.size();
  world.core.Continue({GroupId(1), 0}, std::vector<TokenId>{11, 12});
  world.RunDry();
  paused = world.Take<ResponsePaused>();
  ASSERT_EQ(paused.size(), 1U);
  ASSERT_GT(paused[0].response.tokens.size(), length + 2);
  EXPECT_TRUE(paused[0].response.tokens[length].is_tool);
  EXPECT_TRUE(IsTrue(request, paused[0].response));
  // A sync finds it at rest; then it ends, and its tokens are scored before it does.
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.Settle();
  world.core.FinishPaused({GroupId(1), 0});
  world.RunDry();
  const std::vector<FinishedResponse> finished = world.Take<FinishedResponse>();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].reason, FinishReason::kStopToken);
  EXPECT_TRUE(finished[0].response.prefix_score.has_value());
  EXPECT_EQ(finished[0].response.tokens.size(), paused[0].response.tokens.size());
}

TEST(RemoteCoreTest, ARequestThatComesAfterThePauseIsEnded) {
  RemoteWorld world(WorldOptions());
  Start(world);
  world.core.Submit(WorldRequest(1, 1, 30));
  world.Collect();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.Collect();
  ASSERT_EQ(world.calls.size(), 2U);  // generate, label
  world.DeliverCall(1);
  world.DeliverAnswer(0);
  ASSERT_EQ(world.calls.size(), 2U);  // generate, pause
  world.DeliverCall(1);
  world.DeliverAnswer(0);  // the abort is on its way
  ASSERT_EQ(world.calls.size(), 2U);
  world.DeliverCall(1);  // and there before the request
  world.Settle();
  EXPECT_TRUE(world.Take<WeightsSynced>().empty());
  world.core.LookAfter();
  world.Settle();
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 1U);
}

TEST(RemoteCoreTest, AnotherRunOnTheServerStopsThisOne) {
  RemoteWorld world(WorldOptions());
  Start(world);
  world.server.label = "other:5";
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.Settle();
  WorkerGone gone = GoneOf(world);
  EXPECT_EQ(gone.loss, Loss::kForeign);
  EXPECT_NE(gone.error.message().find("another run uses the server"), std::string::npos);

  RemoteWorld second(WorldOptions());
  Start(second);
  second.core.Submit(WorldRequest(1, 1, 30));
  second.Settle();
  second.StepServer();
  second.server.label = "other:5";
  second.RunDry();
  gone = GoneOf(second);
  EXPECT_EQ(gone.loss, Loss::kForeign);
  EXPECT_TRUE(second.Take<FinishedResponse>().empty());
}

TEST(RemoteCoreTest, ARestartedServerIsLostAndNotForeign) {
  // Its own first label, and one that this run gave it earlier: a call that arrived late.
  for (const std::string& label :
       {std::string("default"), LabelOf(WorldOptions().run, PolicyVersion(7))}) {
    RemoteWorld world(WorldOptions());
    Start(world);
    world.server.label = label;
    ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
    world.Settle();
    const WorkerGone gone = GoneOf(world);
    EXPECT_EQ(gone.loss, Loss::kLost) << label;
    EXPECT_NE(gone.error.message().find("was it restarted?"), std::string::npos);
  }

  RemoteWorld second(WorldOptions());
  Start(second);
  second.core.Submit(WorldRequest(1, 1, 30));
  second.core.Submit(WorldRequest(2, 1, 30));
  second.Settle();
  second.server.label = "default";
  second.RunDry();
  EXPECT_EQ(GoneOf(second).loss, Loss::kLost);
  EXPECT_TRUE(second.Take<FinishedResponse>().empty());
}

TEST(RemoteCoreTest, AServerThatDoesNotFitIsRefused) {
  RemoteOptions options = WorldOptions();
  options.max_context = 5000;
  RemoteWorld small(options);
  small.core.Join();
  small.Settle();
  EXPECT_EQ(GoneOf(small).error.message(),
            "has room for 4096 tokens: must be at least 5000 for a prompt with its response");
  options = WorldOptions();
  options.probe = {4};
  RemoteWorld other(options);
  other.core.Join();
  other.Settle();
  const WorkerGone gone = GoneOf(other);
  EXPECT_EQ(gone.loss, Loss::kUnfit);
  EXPECT_EQ(gone.error.message(), "serves fake, whose tokenizer is not the policy's");
}

TEST(RemoteCoreTest, OneBadAnswerIsForgivenTwoAreNot) {
  RemoteWorld world(WorldOptions());
  Start(world);
  int64_t num_lies = 1;
  world.server.lie = [&](ServerAnswer& answer) {
    if (num_lies-- > 0) answer.body = "garbage";
  };
  world.core.Submit(WorldRequest(1, 1, 10));
  world.RunDry();
  EXPECT_EQ(world.Take<FinishedResponse>().size(), 1U);
  num_lies = 2;
  world.core.Submit(WorldRequest(2, 1, 10));
  world.RunDry();
  EXPECT_EQ(GoneOf(world).loss, Loss::kLost);
}

TEST(RemoteCoreTest, LiesAreFoundOut) {
  const std::vector<std::pair<std::string, std::string>> lies = {
      {R"("finish_reason":"length")", R"("finish_reason":"stop")"},
      {R"("start":0)", R"("start":1)"},
      {R"("version":"run:0")", R"("version":"run:9")"},
      {R"("end":10)", R"("end":9)"},
      {R"("token_ids":[)", R"("token_ids":[1,)"},
  };
  for (const auto& [truth, lie] : lies) {
    RemoteWorld world(WorldOptions());
    Start(world);
    bool lied = false;
    world.server.lie = [&, from = truth, to = lie](ServerAnswer& answer) {
      const size_t at = answer.body.find(from);
      if (at == std::string::npos) return;
      lied = true;
      answer.body.replace(at, from.size(), to);
    };
    GroupRequest request = WorldRequest(1, 1, 10);
    request.stop.stop_tokens = {};
    world.core.Submit(request);
    world.RunDry();
    EXPECT_TRUE(lied) << truth;
    EXPECT_TRUE(world.Take<FinishedResponse>().empty()) << lie;
    EXPECT_EQ(world.Take<WorkerGone>().size(), 1U) << lie;
  }
}

TEST(RemoteCoreTest, ARefusedRequestIsTheGroupsFailureAlone) {
  RemoteWorld world(WorldOptions());
  Start(world);
  bool refused = false;
  world.server.lie = [&](ServerAnswer& answer) {
    if (std::exchange(refused, true)) return;
    answer = {400, R"({"error":{"message":"too long"}})"};
  };
  world.core.Submit(WorldRequest(1, 2, 10));
  world.RunDry();
  const std::vector<GroupRefused> failed = world.Take<GroupRefused>();
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].error.message(), "the server refused a request of group 1: too long");
  EXPECT_TRUE(world.Take<FinishedResponse>().empty());
  world.core.Submit(WorldRequest(2, 1, 10));
  world.RunDry();
  EXPECT_EQ(world.Take<FinishedResponse>().size(), 1U);
}

TEST(RemoteCoreTest, NoMoreIsSentThanTheServerTakes) {
  RemoteOptions options = WorldOptions();
  options.max_requests = 3;
  RemoteWorld world(options);
  Start(world);
  world.core.Submit(WorldRequest(1, 8, 10));
  world.Settle();
  EXPECT_EQ(world.server.num_running(), 3U);
  world.RunDry();
  EXPECT_EQ(world.Take<FinishedResponse>().size(), 8U);

  int64_t num_full = 5;
  world.server.lie = [&](ServerAnswer& answer) {
    if (num_full-- > 0) answer = {503, R"({"error":"full"})"};
  };
  world.core.Submit(WorldRequest(2, 8, 10));
  for (int i = 0; i < 10; ++i) {
    world.RunDry();
    world.core.LookAfter();
  }
  EXPECT_EQ(world.Take<FinishedResponse>().size(), 8U);
  EXPECT_TRUE(world.Take<WorkerGone>().empty());
}

TEST(RemoteCoreTest, AFailedLoadIsTriedOnceMoreAndNeverResumed) {
  RemoteWorld world(WorldOptions());
  Start(world);
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.Collect();
  world.DeliverCall(0);  // label
  world.DeliverAnswer(0);
  world.DeliverCall(0);  // pause
  world.server.control_status = 500;
  world.DeliverAnswer(0);
  world.Settle();
  EXPECT_NE(GoneOf(world).error.message().find("loading /weights/v1 was answered 500: broken"),
            std::string::npos);
  EXPECT_TRUE(world.Take<WeightsSynced>().empty());
}

TEST(RemoteCoreTest, ABrokenConnectionLosesTheWorker) {
  RemoteWorld world(WorldOptions());
  Start(world);
  world.core.Submit(WorldRequest(1, 2, 10));
  world.Collect();
  const int64_t call = world.calls[0].call;
  world.core.Failed(call, Unavailable("connection reset"));
  world.Collect();
  EXPECT_EQ(GoneOf(world).error.message(), "connection reset");
  EXPECT_FALSE(world.core.Sync({PolicyVersion(1), "/w"}).ok());
  world.core.Submit(WorldRequest(2, 1, 10));
  world.core.Answered(call, {200, "late"});
  world.Collect();
  EXPECT_TRUE(world.events.empty());
}

TEST(RemoteCoreTest, ASyncWaitsForAGroupThatIsBoundToAVersion) {
  RemoteWorld world(WorldOptions());
  world.core.Join();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(0), "/weights/v0"}).ok());
  world.Settle();
  GroupRequest bound = WorldRequest(1, 2, 20);
  bound.only_version = PolicyVersion(0);
  bound.stop.stop_tokens = {};
  world.core.Submit(bound);
  world.Settle();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  GroupRequest later = WorldRequest(2, 1, 5);
  later.stop.stop_tokens = {};
  world.core.Submit(later);
  GroupRequest passed = WorldRequest(3, 1, 5);
  passed.only_version = PolicyVersion(0);
  world.Settle();
  EXPECT_EQ(world.server.num_running(), 2U) << "the later group waits for its sync";
  EXPECT_TRUE(world.core.Unfinished().size() == 1 &&
              world.core.Unfinished().front().group == GroupId(2));
  world.RunDry();
  for (const FinishedResponse& done : world.Take<FinishedResponse>()) {
    const int64_t version = done.id.group == GroupId(1) ? 0 : 1;
    for (const TokenRecord& token : done.response.tokens) {
      EXPECT_EQ(token.version, PolicyVersion(version));
    }
  }
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 2U);
  world.core.Submit(passed);
  world.Settle();
  ASSERT_EQ(world.Take<GroupRefused>().size(), 1U);
}

TEST(RemoteCoreTest, WeightsAreFetchedBeforeThePauseWhereTheServerCan) {
  RemoteWorld world(WorldOptions());
  world.server.fetches = 2;
  world.core.Join();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(0), "/weights/v0"}).ok());
  world.Settle();
  EXPECT_TRUE(world.core.facts().fetches);
  EXPECT_EQ(world.server.num_loads, 0) << "it is still loading";
  for (int i = 0; i < 2; ++i) {
    world.core.LookAfter();
    world.Settle();
  }
  EXPECT_EQ(world.server.num_fetched, 1);
  world.server.fetches = 0;
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.Settle();
  EXPECT_EQ(world.server.num_fetched, 2);
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 2U);
}

RemoteOptions ChannelOptions() {
  RemoteOptions options = WorldOptions();
  options.weights = WeightPath::kChannel;
  return options;
}

TEST(RemoteCoreTest, WeightsComeOverAChannelThatIsOpenedOnce) {
  RemoteWorld world(ChannelOptions());
  world.server.num_workers = 4;
  world.server.fetches = 2;
  Start(world);
  EXPECT_EQ(world.num_workers, 4);
  EXPECT_EQ(world.server.num_loads, 1);
  ASSERT_TRUE(world.core.Sync(WorldWeights(1)).ok());
  world.Settle();
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 1U);
  EXPECT_EQ(world.server.label, "run:1");
  EXPECT_EQ(world.server.num_loads, 2);
  EXPECT_EQ(world.server.num_fetched, 0);
}

// The server may say that it has the weights before our end of the channel does, or after it.
TEST(RemoteCoreTest, AnUpdateIsDoneWhenTheServerAndTheChannelSaySo) {
  for (const bool server_first : {true, false}) {
    RemoteWorld world(ChannelOptions());
    Start(world);
    world.meets = false;
    ASSERT_TRUE(world.core.Sync(WorldWeights(1)).ok());
    world.Settle();
    ASSERT_TRUE(world.Meet());
    if (server_first) {
      while (!world.answers.empty()) world.DeliverAnswer(0);
    } else {
      world.SayMet();
    }
    EXPECT_EQ(world.calls.size(), 0U) << "the update is not done yet";
    world.Settle();
    EXPECT_EQ(world.Take<WeightsSynced>().size(), 1U);
  }
}

TEST(RemoteCoreTest, AFailedTransferLosesTheWorkerAndIsNeverResumed) {
  RemoteWorld world(ChannelOptions());
  Start(world);
  world.core.Submit(WorldRequest(1, 2, 30));
  world.Settle();
  world.meets = false;
  ASSERT_TRUE(world.core.Sync(WorldWeights(1)).ok());
  world.Settle();
  ASSERT_EQ(world.transfers.size(), 1U);
  world.core.Transferred(world.transfers[0], Unavailable("NCCL broadcast: not done after 120 s"));
  world.Settle();
  const WorkerGone gone = GoneOf(world);
  EXPECT_EQ(gone.loss, Loss::kLost);
  EXPECT_EQ(gone.error.message(), "NCCL broadcast: not done after 120 s");
  EXPECT_EQ(world.server.label, "run:0");
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 0U);
  world.core.CheckInvariants();
}

TEST(RemoteCoreTest, AServerWithoutTheRouteOfTheChannelIsUnfit) {
  RemoteWorld world(ChannelOptions());
  world.core.Join();
  world.Settle();
  ASSERT_TRUE(world.core.Sync(WorldWeights(0)).ok());
  world.Collect();
  while (world.calls[0].http.target != "/init_weight_transfer_engine") {
    world.DeliverCall(0);
    world.DeliverAnswer(0);
  }
  world.core.Answered(world.calls[0].call, {404, R"({"detail":"Not Found"})"});
  world.Collect();
  const WorkerGone gone = GoneOf(world);
  EXPECT_EQ(gone.loss, Loss::kUnfit);
  EXPECT_EQ(gone.error.message().find("the weight channel was answered 404"), 0U)
      << gone.error.message();
}

TEST(RemoteCoreTest, ResponsesGoOnWhileASyncWaitsForItsTurn) {
  RemoteOptions options = WorldOptions();
  options.pauses_in_turn = true;
  RemoteWorld world(options);
  Start(world);
  EXPECT_FALSE(world.asks_pause) << "there was nothing to interrupt";
  GroupRequest request = WorldRequest(1, 1, 30);
  request.stop.stop_tokens = {};
  world.core.Submit(request);
  world.Settle();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  world.Settle();
  EXPECT_TRUE(world.asks_pause);
  for (int i = 0; i < 6; ++i) world.StepServer();
  world.core.Submit(WorldRequest(2, 1, 10));
  world.Settle();
  EXPECT_EQ(world.server.num_running(), 2U) << "new requests are sent meanwhile";
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 0U);
  world.core.AllowPause();
  world.RunDry();
  EXPECT_EQ(world.Take<WeightsSynced>().size(), 1U);
  EXPECT_EQ(world.num_pauses_ended, 1);
  for (const FinishedResponse& done : world.Take<FinishedResponse>()) {
    if (done.id.group != GroupId(1)) continue;
    EXPECT_EQ(done.response.tokens[5].version, PolicyVersion(0));
    EXPECT_EQ(done.response.tokens[6].version, PolicyVersion(1));
  }
}

TEST(RemoteCoreTest, ATurnThatCannotBeUsedIsGivenBack) {
  RemoteOptions options = WorldOptions();
  options.pauses_in_turn = true;
  RemoteWorld world(options);
  Start(world);
  world.core.Submit(WorldRequest(1, 1, 30));
  world.Settle();
  ASSERT_TRUE(world.core.Sync({PolicyVersion(1), "/weights/v1"}).ok());
  // Bound to the present version: the sync waits for it.
  GroupRequest bound = WorldRequest(2, 1, 30);
  bound.only_version = PolicyVersion(0);
  world.core.Submit(bound);
  world.core.AllowPause();
  world.Collect();
  EXPECT_EQ(world.num_pauses_ended, 1);
  EXPECT_FALSE(world.core.syncing());
  for (int i = 0; i < 100 && world.Take<WeightsSynced>().empty(); ++i) {
    world.StepServer();
    world.Settle();
    if (std::exchange(world.asks_pause, false)) world.core.AllowPause();
    world.Settle();
  }
  EXPECT_EQ(world.server.label, "run:1");
}

}  // namespace
}  // namespace pace
