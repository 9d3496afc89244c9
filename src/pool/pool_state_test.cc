#include "pool/pool_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "control/accept_all.h"
#include "control/pace_admission.h"
#include "control/test_groups.h"

namespace pace {
namespace {

PooledGroup Pooled(const TestGroup& group, bool keep_members = false) {
  return {group.summary, group.members, keep_members};
}

// A group whose lag at step 20 is `lag`.
TestGroup GroupWithLag(int64_t id, int64_t lag, int64_t num_bytes = 1) {
  TestGroup group;
  const std::vector<Segment> segments = {{PolicyVersion(20 - lag), 3}};
  group.members = {MemberSummary::Of(segments, PolicyVersion(20 - lag), std::nullopt)};
  group.summary = GroupSummary::Of(GroupId(id), PolicyVersion(20 - lag), group.members, num_bytes);
  return group;
}

std::unique_ptr<AdmissionPolicy> LagPolicy() {
  auto policy = std::make_unique<AcceptAll>(nullptr);
  policy->BeginStep(PolicyVersion(20), {.occupancy = 0, .batch = 1});
  return policy;
}

std::vector<int64_t> DrawAll(PoolState& pool, const AdmissionPolicy& policy) {
  std::vector<int64_t> ids;
  while (!pool.empty()) ids.push_back(pool.Draw(policy).summary.id.value());
  return ids;
}

TEST(PoolStateTest, DrawsInCompletionOrder) {
  PoolState pool({});
  const auto policy = LagPolicy();
  for (const int64_t id : {3, 1, 2}) pool.Put(Pooled(GroupWithLag(id, id)), *policy);
  EXPECT_EQ(pool.occupancy(), 3);
  EXPECT_EQ(DrawAll(pool, *policy), (std::vector<int64_t>{3, 1, 2}));
}

TEST(PoolStateTest, DrawsNewestFirst) {
  PoolState pool({.draw_order = DrawOrder::kNewest});
  const auto policy = LagPolicy();
  for (const int64_t id : {3, 1, 2}) pool.Put(Pooled(GroupWithLag(id, id)), *policy);
  EXPECT_EQ(DrawAll(pool, *policy), (std::vector<int64_t>{2, 1, 3}));
}

TEST(PoolStateTest, DrawsLowestScoreFirstAndOldestAmongEquals) {
  PoolState pool({.draw_order = DrawOrder::kLowestScore});
  const auto policy = LagPolicy();
  pool.Put(Pooled(GroupWithLag(1, 5)), *policy);
  pool.Put(Pooled(GroupWithLag(2, 2)), *policy);
  pool.Put(Pooled(GroupWithLag(3, 2)), *policy);
  EXPECT_EQ(pool.Draw(*policy).summary.id.value(), 2);
  pool.Put(Pooled(GroupWithLag(4, 0)), *policy);  // after the ranking was made
  EXPECT_EQ(DrawAll(pool, *policy), (std::vector<int64_t>{4, 3, 1}));
}

TEST(PoolStateTest, ABoundInGroupsEvictsTheHighestScore) {
  PoolState pool({.max_groups = 2});
  const auto policy = LagPolicy();
  EXPECT_TRUE(pool.Put(Pooled(GroupWithLag(1, 3)), *policy).empty());
  EXPECT_TRUE(pool.Put(Pooled(GroupWithLag(2, 9)), *policy).empty());
  const auto evicted = pool.Put(Pooled(GroupWithLag(3, 1)), *policy);
  ASSERT_EQ(evicted.size(), 1U);
  EXPECT_EQ(evicted[0].group, GroupId(2));
  EXPECT_EQ(evicted[0].reason, Reason::kPoolGroups);
}

TEST(PoolStateTest, ABoundInBytesMayEvictSeveralOrTheNewcomerButNeverTheLast) {
  PoolState pool({.max_bytes = 10});
  const auto policy = LagPolicy();
  pool.Put(Pooled(GroupWithLag(1, 3, 4)), *policy);
  pool.Put(Pooled(GroupWithLag(2, 4, 4)), *policy);
  const auto newcomer = pool.Put(Pooled(GroupWithLag(3, 9, 4)), *policy);
  ASSERT_EQ(newcomer.size(), 1U);
  EXPECT_EQ(newcomer[0].group, GroupId(3));
  EXPECT_EQ(newcomer[0].reason, Reason::kPoolBytes);
  const auto both = pool.Put(Pooled(GroupWithLag(4, 0, 1000)), *policy);
  EXPECT_EQ(both.size(), 2U);
  EXPECT_EQ(pool.occupancy(), 1);
  EXPECT_EQ(pool.num_bytes(), 1000);
}

TEST(PoolStateTest, ACopyOwnsItsMembers) {
  TestGroup group = GroupWithLag(1, 2);
  const PooledGroup original = Pooled(group, /*keep_members=*/true);
  const PooledGroup copy = original.Copy();
  EXPECT_EQ(copy.summary.members.data(), copy.members.data());
  EXPECT_NE(copy.members.data(), original.members.data());
  EXPECT_TRUE(Pooled(group, false).summary.members.empty());
}

// The naive pool: a list, searched and sorted anew each time.
class NaivePool {
 public:
  explicit NaivePool(const PoolOptions& options) : options_(options) {}

  std::vector<int64_t> Put(const TestGroup& group, const AdmissionPolicy& policy) {
    groups_.push_back(group.summary);
    std::vector<int64_t> evicted;
    while (groups_.size() > 1 && OverBound()) {
      const auto highest = std::max_element(groups_.begin(), groups_.end(),
                                            [&](const GroupSummary& a, const GroupSummary& b) {
                                              return policy.Score(a) < policy.Score(b);
                                            });
      evicted.push_back(highest->id.value());
      groups_.erase(highest);
    }
    return evicted;
  }

  int64_t Draw(const AdmissionPolicy& policy) {
    auto next = groups_.begin();
    if (options_.draw_order == DrawOrder::kNewest) next = groups_.end() - 1;
    if (options_.draw_order == DrawOrder::kLowestScore) {
      next = std::min_element(groups_.begin(), groups_.end(),
                              [&](const GroupSummary& a, const GroupSummary& b) {
                                return policy.Score(a) < policy.Score(b);
                              });
    }
    const int64_t id = next->id.value();
    groups_.erase(next);
    return id;
  }

  size_t size() const { return groups_.size(); }

 private:
  bool OverBound() const {
    int64_t num_bytes = 0;
    for (const GroupSummary& group : groups_) num_bytes += group.num_bytes;
    return (options_.max_groups > 0 &&
            static_cast<int64_t>(groups_.size()) > options_.max_groups) ||
           (options_.max_bytes > 0 && num_bytes > options_.max_bytes);
  }

  const PoolOptions options_;
  std::vector<GroupSummary> groups_;
};

TEST(PoolStateTest, AgreesWithTheNaivePool) {
  for (uint64_t trial = 0; trial < 300; ++trial) {
    TestRandom random(trial);
    PoolOptions options;
    options.draw_order = static_cast<DrawOrder>(random.Below(3));
    if (random.Chance(0.5)) options.max_groups = 1 + random.Below(100);
    if (random.Chance(0.5)) options.max_bytes = 1 + random.Below(30000);
    AdmissionOptions admission;
    admission.min_observations = 3;
    admission.window = 30;
    PaceAdmission policy(admission, 4, trial);
    PoolState pool(options);
    NaivePool naive(options);
    std::vector<TestGroup> owned;  // the naive pool borrows summaries
    owned.reserve(4000);
    int64_t step = 8;
    policy.BeginStep(PolicyVersion(step), {.occupancy = 0, .batch = 4});
    for (int64_t op = 0; op < 1500; ++op) {
      const int64_t choice = random.Below(20);
      if (choice == 0) {
        policy.BeginStep(PolicyVersion(++step), {.occupancy = pool.occupancy(), .batch = 4});
        pool.OnStepBegan();
      } else if (choice < 9 || naive.size() == 0) {
        owned.push_back(RandomGroup(random, GroupId(op), PolicyVersion(step)));
        const TestGroup& group = owned.back();
        policy.Observe(group.summary, policy.Judge(group.summary));
        std::vector<int64_t> evicted;
        for (const Eviction& eviction : pool.Put(Pooled(group), policy)) {
          evicted.push_back(eviction.group.value());
        }
        ASSERT_EQ(evicted, naive.Put(group, policy)) << "trial " << trial << " op " << op;
      } else {
        ASSERT_EQ(pool.Draw(policy).summary.id.value(), naive.Draw(policy))
            << "trial " << trial << " op " << op;
      }
      pool.CheckInvariants();
      ASSERT_EQ(pool.occupancy(), static_cast<int64_t>(naive.size()));
      if (random.Chance(0.005)) {
        PoolState restored(options);
        restored.Restore(pool.Save());
        ASSERT_EQ(restored.occupancy(), pool.occupancy());
        ASSERT_EQ(restored.num_bytes(), pool.num_bytes());
      }
    }
  }
}

}  // namespace
}  // namespace pace
