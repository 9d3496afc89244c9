#include "judge/reward_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/random.h"

namespace pace {
namespace {

RewardReply Score(double score) {
  RewardReply reply;
  reply.score = score;
  return reply;
}

template <typename T>
std::vector<T> All(const RewardActions& actions) {
  std::vector<T> out;
  for (const RewardAction& action : actions) {
    if (const T* typed = std::get_if<T>(&action)) out.push_back(*typed);
  }
  return out;
}

constexpr RewardLimits kOne = {.num_workers = 1, .batch = 1};
constexpr RewardLimits kBatch = {.num_workers = 1, .batch = 4};

TEST(RewardQueueTest, AProcessTakesARequestWhenItIsReady) {
  RewardQueue queue(kOne);
  EXPECT_EQ(All<StartRewardWorker>(queue.Warm(Seconds(0))).size(), 1U);
  EXPECT_TRUE(queue.Ask(7, Seconds(0)).empty());
  const auto sent = All<SendRewards>(queue.OnReady(0, Seconds(1)));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].tickets, std::vector<RewardTicket>{7});
  const auto delivered = All<DeliverReward>(queue.OnReplies(0, {Score(0.5)}, Seconds(2)));
  ASSERT_EQ(delivered.size(), 1U);
  EXPECT_EQ(delivered[0].ticket, 7);
  EXPECT_EQ(delivered[0].reply.score, 0.5);
}

TEST(RewardQueueTest, ALateRequestFailsAndItsProcessIsEnded) {
  RewardQueue queue(kOne);
  queue.Ask(1, Seconds(0));
  queue.OnReady(0, Seconds(1));
  EXPECT_EQ(queue.NextDeadline(), Seconds(11));
  EXPECT_TRUE(queue.OnTime(Seconds(10.9)).empty());
  const RewardActions late = queue.OnTime(Seconds(11));
  EXPECT_EQ(All<EndRewardWorker>(late).size(), 1U);
  ASSERT_EQ(All<DeliverReward>(late).size(), 1U);
  const RewardReply reply = All<DeliverReward>(late)[0].reply;
  EXPECT_EQ(reply.fault, RewardFault::kTimeout);
  EXPECT_EQ(reply.message, "did not return within 10 s");
  // The next request starts another one.
  EXPECT_EQ(All<StartRewardWorker>(queue.Ask(2, Seconds(12))).size(), 1U);
}

TEST(RewardQueueTest, OfABatchOnlyTheRequestAtFaultFails) {
  RewardQueue queue(kBatch);
  queue.Warm(Seconds(0));
  for (RewardTicket ticket = 0; ticket < 4; ++ticket) queue.Ask(ticket, Seconds(0));
  EXPECT_EQ(All<SendRewards>(queue.OnReady(0, Seconds(0)))[0].tickets.size(), 4U);
  RewardActions actions = queue.OnGone(0, "ended", Seconds(1));
  EXPECT_TRUE(All<DeliverReward>(actions).empty());
  std::map<RewardTicket, RewardFault> ended;
  while (ended.size() < 4) {
    actions = queue.OnReady(0, Seconds(2));
    auto sent = All<SendRewards>(actions);
    while (!sent.empty()) {
      ASSERT_EQ(sent[0].tickets.size(), 1U);
      actions = sent[0].tickets[0] == 2 ? queue.OnGone(0, "ended", Seconds(3))
                                        : queue.OnReplies(0, {Score(1)}, Seconds(3));
      for (const DeliverReward& done : All<DeliverReward>(actions)) {
        ended[done.ticket] = done.reply.fault;
      }
      sent = All<SendRewards>(actions);
    }
  }
  EXPECT_EQ(ended[2], RewardFault::kCrash);
  EXPECT_EQ(ended[0], RewardFault::kNone);
  EXPECT_EQ(ended[3], RewardFault::kNone);
}

TEST(RewardQueueTest, RequestsFailWhenNoProcessStarts) {
  RewardQueue queue(kOne);
  RewardActions actions = queue.Ask(5, Seconds(0));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(All<StartRewardWorker>(actions).size(), 1U) << i;
    actions = queue.OnGone(0, "no such file", Seconds(i));
    EXPECT_TRUE(All<DeliverReward>(actions).empty());
  }
  actions = queue.OnGone(0, "no such file", Seconds(3));
  ASSERT_EQ(All<DeliverReward>(actions).size(), 1U);
  EXPECT_EQ(All<DeliverReward>(actions)[0].reply.message,
            "no process can be started: no such file");
}

// Random worlds: processes that answer, hang, crash and fail to start. Checked against what must
// hold of any history.
TEST(RewardQueueTest, EveryRequestEndsOnceAndNoProcessHasTwoBatches) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const CounterRandom random(seed, 1);
    uint64_t next_random = 0;
    const auto below = [&](uint64_t n) { return random.Bits(next_random++) % n; };
    const RewardLimits limits{.num_workers = static_cast<int64_t>(1 + below(4)),
                              .batch = static_cast<int64_t>(1 + below(5)),
                              .timeout = Seconds(5),
                              .start_timeout = Seconds(9)};
    RewardQueue queue(limits);
    enum class Life { kNone, kStarting, kIdle, kBusy };
    std::vector<Life> lives(static_cast<size_t>(limits.num_workers), Life::kNone);
    std::map<int64_t, std::vector<RewardTicket>> batches;
    std::set<RewardTicket> open;
    std::set<RewardTicket> poison;  // these hang or crash whoever runs them
    std::map<RewardTicket, RewardReply> ended;
    Seconds now(0);
    const auto execute = [&](const RewardActions& actions) {
      for (const RewardAction& action : actions) {
        if (const auto* start = std::get_if<StartRewardWorker>(&action)) {
          ASSERT_EQ(lives[static_cast<size_t>(start->worker)], Life::kNone);
          lives[static_cast<size_t>(start->worker)] = Life::kStarting;
        } else if (const auto* send = std::get_if<SendRewards>(&action)) {
          ASSERT_EQ(lives[static_cast<size_t>(send->worker)], Life::kIdle);
          ASSERT_FALSE(send->tickets.empty());
          ASSERT_LE(std::ssize(send->tickets), limits.batch);
          lives[static_cast<size_t>(send->worker)] = Life::kBusy;
          batches[send->worker] = send->tickets;
        } else if (const auto* end = std::get_if<EndRewardWorker>(&action)) {
          ASSERT_NE(lives[static_cast<size_t>(end->worker)], Life::kNone);
          lives[static_cast<size_t>(end->worker)] = Life::kNone;
          batches.erase(end->worker);
        } else {
          const auto& done = std::get<DeliverReward>(action);
          ASSERT_EQ(open.erase(done.ticket), 1U);
          ended[done.ticket] = done.reply;
        }
      }
    };
    RewardTicket next = 0;
    if (below(2) == 0) execute(queue.Warm(now));
    for (int event = 0; event < 400; ++event) {
      now += Seconds(0.5);
      execute(queue.OnTime(now));
      if (event < 200 && below(2) == 0) {
        if (below(8) == 0) poison.insert(next);
        open.insert(next);
        execute(queue.Ask(next++, now));
      }
      for (int64_t worker = 0; worker < limits.num_workers; ++worker) {
        if (below(4) == 0) continue;
        const Life life = lives[static_cast<size_t>(worker)];
        if (life == Life::kStarting) {
          // Seldom enough that three in a row are rare, not impossible.
          if (below(10) == 0) {
            execute(queue.OnGone(worker, "failed to start", now));
          } else {
            lives[static_cast<size_t>(worker)] = Life::kIdle;
            execute(queue.OnReady(worker, now));
          }
        } else if (life == Life::kBusy) {
          const std::vector<RewardTicket> batch = batches[worker];
          const bool bad = std::any_of(batch.begin(), batch.end(),
                                       [&](RewardTicket t) { return poison.contains(t); });
          if (bad && below(2) == 0) continue;  // it hangs
          if (bad) {
            execute(queue.OnGone(worker, "ended", now));
          } else {
            lives[static_cast<size_t>(worker)] = Life::kIdle;
            batches.erase(worker);
            std::vector<RewardReply> replies;
            for (const RewardTicket ticket : batch) {
              replies.push_back(Score(static_cast<double>(ticket)));
            }
            execute(queue.OnReplies(worker, replies, now));
          }
        }
      }
      ASSERT_EQ(queue.num_waiting() + queue.num_running(), std::ssize(open));
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(open.empty()) << "seed " << seed << ": " << open.size();
    for (const auto& [ticket, reply] : ended) {
      if (poison.contains(ticket)) {
        EXPECT_FALSE(reply.ok()) << ticket;
      } else if (reply.ok()) {
        EXPECT_EQ(reply.score, static_cast<double>(ticket));
      } else {
        EXPECT_TRUE(reply.message.starts_with("no process can be started")) << reply.message;
      }
    }
  }
}

}  // namespace
}  // namespace pace
