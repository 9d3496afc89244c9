#include "cluster/event_queue.h"

#include <gtest/gtest.h>

#include <map>

#include "core/random.h"

namespace pace {
namespace {

TEST(EventQueueTest, EqualTimesGoToTheSmallerSource) {
  EventQueue queue(4);
  for (const int64_t source : {3, 1, 2, 0}) queue.Set(source, Seconds(5));
  for (int64_t source = 0; source < 4; ++source) {
    EXPECT_EQ(queue.source(), source);
    queue.Remove(source);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueueTest, AgreesWithASortedMapOverRandomChanges) {
  constexpr int64_t kSources = 37;
  EventQueue queue(kSources);
  std::map<int64_t, double> reference;
  const CounterRandom random(3, 9);
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto source = static_cast<int64_t>(random.Bits(i, 0) % kSources);
    if (random.Uniform(i, 1) < 0.3) {
      queue.Remove(source);
      reference.erase(source);
    } else {
      const double time = static_cast<double>(random.Bits(i, 2) % 50);
      queue.Set(source, Seconds(time));
      reference[source] = time;
    }
    ASSERT_EQ(queue.empty(), reference.empty());
    if (reference.empty()) continue;
    auto best = reference.begin();
    for (auto it = reference.begin(); it != reference.end(); ++it) {
      if (it->second < best->second) best = it;
    }
    ASSERT_EQ(queue.source(), best->first);
    ASSERT_EQ(queue.time().count(), best->second);
  }
}

}  // namespace
}  // namespace pace
