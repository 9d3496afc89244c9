#include "coordinator/snapshot.h"

#include <gtest/gtest.h>

#include "control/supply_policies.h"
#include "coordinator/chaos_driver.h"
#include "coordinator/event_json.h"

namespace pace {
namespace {

ChaosOptions Options() {
  ChaosOptions options;
  options.coordinator.batch = 2;
  options.coordinator.group_size = 2;
  options.coordinator.num_steps = 1000;
  return options;
}

std::unique_ptr<Coordinator> MakeCoordinator(const CoordinatorOptions& options) {
  AdmissionOptions admission;
  admission.min_observations = 4;
  admission.window = 20;
  admission.weight_scope = WeightScope::kMember;  // so that the pool keeps members
  return std::make_unique<Coordinator>(options, MakeAdmissionPolicy(admission, options.batch, 1),
                                       std::make_unique<ThresholdSupply>(12));
}

// A coordinator in the middle of things: groups running, pooled and selected.
CoordinatorSnapshot Busy() {
  const ChaosOptions options = Options();
  for (uint64_t seed = 0;; ++seed) {
    ChaosDriver driver(options, seed, MakeCoordinator(options.coordinator));
    for (int i = 0; i < 300; ++i) driver.DeliverRandom();
    const SupplyView view = driver.coordinator().supply_view();
    if (view.num_running > 0 && view.num_pooled > 0 && view.num_selected > 0 &&
        view.num_awaiting_sync > 0) {
      return driver.coordinator().Save();
    }
  }
}

Status TryRestore(const CoordinatorSnapshot& snapshot) {
  return MakeCoordinator(Options().coordinator)->Restore(snapshot);
}

TEST(SnapshotTest, ReadsBackToTheSameText) {
  const std::string json = ToJson(Busy());
  const auto read = SnapshotFromJson(json, "s.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(ToJson(*read), json);
  EXPECT_TRUE(TryRestore(*read).ok());
}

TEST(SnapshotTest, EveryTruncationIsRefused) {
  const std::string json = ToJson(Busy());
  for (size_t size = 0; size + 1 < json.size(); size += 7) {
    const auto read = SnapshotFromJson(std::string_view(json).substr(0, size), "s.json");
    ASSERT_FALSE(read.ok()) << size;
    ASSERT_EQ(read.status().message().find("s.json"), 0U);
    ASSERT_EQ(read.status().message().find('\n'), std::string::npos);
  }
}

TEST(SnapshotTest, SaysWhichFieldIsWrong) {
  const auto error = [](std::string_view from, std::string_view to) {
    std::string json = ToJson(Busy());
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos);
    json.replace(at, from.size(), to);
    const auto read = SnapshotFromJson(json, "s.json");
    return read.ok() ? std::string("accepted") : read.status().message();
  };
  EXPECT_NE(error("\"format_version\":1", "\"format_version\":2").find("format_version"),
            std::string::npos);
  EXPECT_NE(error("\"batch\":2", "\"batch\":\"2\"").find("coordinator.batch"), std::string::npos);
  EXPECT_NE(error("\"batch\":2", "\"batch\":-2").find("-2"), std::string::npos);
  EXPECT_NE(error("\"batch\":2", "\"batch\":2,\"bach\":3").find("bach"), std::string::npos);
  EXPECT_NE(error("\"batch\":2,", "").find("batch"), std::string::npos);
  EXPECT_NE(error("\"smoothed_rate\":", "\"smoothed_rate\":NaN,\"x\":").find("smoothed_rate"),
            std::string::npos);
}

// Every way the parts can disagree is found before anything is restored.
TEST(SnapshotTest, RefusesPartsThatDisagree) {
  const CoordinatorSnapshot good = *SnapshotFromJson(ToJson(Busy()), "s");
  const auto refused = [&good](auto change) {
    CoordinatorSnapshot bad = *SnapshotFromJson(ToJson(good), "s");
    change(bad);
    const Status status = TryRestore(bad);
    return !status.ok() && status.message().find('\n') == std::string::npos;
  };
  ASSERT_TRUE(TryRestore(good).ok());
  EXPECT_TRUE(refused([](auto& s) { s.batch = 3; }));
  EXPECT_TRUE(refused([](auto& s) { s.published = PolicyVersion(s.version.step() + 1); }));
  EXPECT_TRUE(refused([](auto& s) { s.version = PolicyVersion(int64_t{1} << 52); }));
  EXPECT_TRUE(refused([](auto& s) { s.num_trained += 1; }));
  EXPECT_TRUE(refused([](auto& s) { s.num_lost += 1; }));
  EXPECT_TRUE(refused([](auto& s) { s.pool.pop_back(); }));
  EXPECT_TRUE(refused([](auto& s) { s.pool.push_back(s.pool.front().Copy()); }));
  EXPECT_TRUE(refused([](auto& s) { s.selected.pop_back(); }));
  EXPECT_TRUE(refused([](auto& s) { s.selected.push_back(GroupId(1000000)); }));
  EXPECT_TRUE(refused([](auto& s) { s.groups.pop_back(); }));
  EXPECT_TRUE(refused([](auto& s) { s.workers.clear(); }));
  EXPECT_TRUE(refused([](auto& s) { s.workers.front().second.num_running += 1; }));
  EXPECT_TRUE(refused([](auto& s) { s.workers.push_back(s.workers.front()); }));
  EXPECT_TRUE(refused([](auto& s) { s.awaiting_sync.front().num_groups = 100; }));
  EXPECT_TRUE(refused([](auto& s) { s.pool.front().members.pop_back(); }));
  EXPECT_TRUE(refused([](auto& s) { s.admission.scores = {-3}; }));
  EXPECT_TRUE(refused([](auto& s) {
    s.training = !s.training;
    s.gathering = !s.gathering;
  }));
}

TEST(EventJsonTest, EveryEventReadsBack) {
  const std::vector<Event> events = {
      WorkerJoined{WorkerId(3), 8},
      WorkerLost{WorkerId(3)},
      ResponseFinished{GroupId(5), 1, {{PolicyVersion(0), 95}, {PolicyVersion(2), 1}}, 0.25, 77},
      ResponseFinished{GroupId(5), 0, {{PolicyVersion(0), 1}}, std::nullopt, 0},
      GroupFailed{GroupId(9)},
      WorkerSynced{WorkerId(1), PolicyVersion(4)},
      StepFinished{PolicyVersion(6)},
      EvaluationFinished{PolicyVersion(6)},
      CheckpointFinished{PolicyVersion(7)},
      StopRequested{}};
  for (const Event& event : events) {
    std::string json;
    AppendEventJson(json, event);
    const auto read = EventFromJson(json);
    ASSERT_TRUE(read.ok()) << json << ": " << read.status().message();
    std::string again;
    AppendEventJson(again, *read);
    EXPECT_EQ(again, json);
  }
}

TEST(EventJsonTest, RefusesWhatIsNotAnEvent) {
  for (const std::string_view bad :
       {"", "{}", "[]", "{\"event\":\"worker_joined\",\"worker\":0}",
        "{\"event\":\"worker_lost\",\"worker\":0,\"group\":1}",
        "{\"event\":\"worker_lost\",\"worker\":-1}",
        "{\"event\":\"worker_lost\",\"worker\":1,\"worker\":1}",
        "{\"event\":\"worker_lost\",\"worker\":1.5}", "{\"event\":\"group_failed\",\"grupo\":1}",
        "{\"event\":\"party\"}", "{\"event\":\"two\\nlines\"}",
        "{\"event\":\"response_finished\",\"group\":0,\"member\":0,\"segments\":[[0]],"
        "\"prefix_score\":null,\"num_bytes\":0}",
        "{\"event\":\"response_finished\",\"group\":0,\"member\":0,\"segments\":[[],5]],"
        "\"prefix_score\":null,\"num_bytes\":7}",
        "{\"event\":\"response_finished\",\"group\":0,\"member\":0,\"segments\":[[0,1,2]],"
        "\"prefix_score\":null,\"num_bytes\":0}",
        "{\"event\":\"response_finished\",\"group\":0,\"member\":0,\"segments\":[[0,0]],"
        "\"prefix_score\":null,\"num_bytes\":0}",
        "{\"event\":\"response_finished\",\"group\":0,\"member\":0,\"segments\":[[0,1]],"
        "\"num_bytes\":0}"}) {
    const auto read = EventFromJson(bad);
    EXPECT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace pace
