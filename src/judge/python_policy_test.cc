// A policy in a process. No test waits for a time of its own: what is slow is ended by the policy.
#include "judge/python_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/accept_all.h"
#include "core/random.h"
#include "core/test_files.h"

namespace pace {
namespace {

constexpr char kPolicies[] = R"(
import collections, os, time
import pace
class Freshest:
    def begin_step(self, step, occupancy, batch, served):
        self.step = step
    def score(self, group):
        return group.lag(self.step)
    def judge(self, group):
        return pace.Decision(True, self.score(group), "unfiltered")
class Window:  # admits what is no staler than the mean of the last three
    def __init__(self):
        self.seen = []
    def begin_step(self, step, occupancy, batch, served):
        self.step = step
    def judge(self, group):
        return not self.seen or group.lag(self.step) <= sum(self.seen) / len(self.seen)
    def observe(self, group, decision):
        self.seen = (self.seen + [decision.score])[-3:]
class Saved(Window):
    def state(self):
        return {"last": self.seen, "step": self.step}
    def restore(self, state):
        self.seen, self.step = state["last"], state["step"]
class Queue(Window):
    def __init__(self):
        self.seen = collections.deque()
class Raises:
    def judge(self, group): raise ValueError("mine")
class Exits:
    def judge(self, group): os._exit(1)
class Hangs:
    def judge(self, group): time.sleep(1000)
class Nothing:
    def judge(self, group): pass
class Nan:
    def score(self, group): return float("nan")
    def judge(self, group): return True
class Mood:
    def judge(self, group): return pace.Decision(True, 1.0, "mood")
class Long:
    def judge(self, group): raise ValueError("x" * (1 << 24) + "\n")
class Missing:
    def judge(self, group): return pace.AdmissionPolicy
class NoJudge:
    pass
class Members:
    needs_members = True
    def judge(self, group): return True
class Forks:
    def judge(self, group):
        os.fork()
        print("x" * 100000)
        os.chdir("/")
        return True
)";

// Of a seed: groups of one to four members, generated under one to three versions.
std::vector<MemberSummary> RandomMembers(uint64_t seed) {
  const CounterRandom random(seed, 1);
  uint64_t index = 0;
  const auto draw = [&](int64_t bound) {
    return static_cast<int64_t>(random.Uniform(index++) * static_cast<double>(bound));
  };
  std::vector<MemberSummary> members(static_cast<size_t>(1 + draw(4)));
  for (MemberSummary& member : members) {
    std::vector<Segment> segments;
    int64_t version = draw(5);
    for (int64_t i = draw(3); i >= 0; --i) {
      segments.push_back({PolicyVersion(version), 1 + draw(700)});
      version += 1 + draw(3);
    }
    member = MemberSummary::Of(segments, PolicyVersion(version), std::nullopt);
  }
  return members;
}

GroupSummary GroupOf(int64_t id, const std::vector<MemberSummary>& members) {
  PolicyVersion assembled(0);
  for (const MemberSummary& member : members) assembled = std::max(assembled, member.completed);
  return GroupSummary::Of(GroupId(id), assembled, members, 0);
}

class PythonPolicyTest : public testing::Test {
 protected:
  PythonPolicyTest() : file_((ScratchFolder() / "mine.py").string()) {
    WriteFile(file_, kPolicies);
  }

  std::unique_ptr<PythonPolicy> Open(const std::string& name, bool saved = false) {
    return std::make_unique<PythonPolicy>(PythonName{file_, name}, options_, saved);
  }
  // What is wrong with it, without the file and the class.
  std::string FailureOf(const std::string& name, const AdmissionPolicy& policy) const {
    if (policy.failure() == nullptr) return "none";
    const std::string text = policy.failure()->message();
    const std::string start = Concat("admission policy ", file_, ":", name, ": ");
    EXPECT_EQ(text.substr(0, start.size()), start);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text.substr(start.size());
  }
  std::string FaultOf(const std::string& name) {
    const auto policy = Open(name);
    policy->BeginStep(PolicyVersion(20), {.occupancy = 3});
    const std::vector<MemberSummary> members = RandomMembers(1);
    (void)policy->Judge(GroupOf(7, members));
    return FailureOf(name, *policy);
  }

  AdmissionOptions options_;
  const std::string file_;
};

TEST_F(PythonPolicyTest, FreshestFirstIsTheBuiltInOneToTheBit) {
  const auto ours = Open("Freshest");
  AcceptAll built_in(nullptr);
  for (int64_t step = 20; step < 24; ++step) {
    ours->BeginStep(PolicyVersion(step), {.occupancy = 9, .batch = 3});
    built_in.BeginStep(PolicyVersion(step), {.occupancy = 9, .batch = 3});
    for (int64_t id = 0; id < 50; ++id) {
      const std::vector<MemberSummary> members =
          RandomMembers(static_cast<uint64_t>(step * 100 + id));
      const GroupSummary group = GroupOf(id, members);
      EXPECT_EQ(ours->Score(group), built_in.Score(group));
      const Decision a = ours->Judge(group);
      const Decision b = built_in.Judge(group);
      EXPECT_EQ(a.verdict, b.verdict);
      EXPECT_EQ(a.reason, b.reason);
      EXPECT_EQ(a.score, b.score);
      EXPECT_EQ(a.waiting, b.waiting);
    }
  }
  EXPECT_EQ(FailureOf("Freshest", *ours), "none");
}

TEST_F(PythonPolicyTest, ARestoredPolicyGoesOnAsTheSavedOneWould) {
  for (const char* name : {"Window", "Saved"}) {
    const auto first = Open(name, /*saved=*/true);
    std::unique_ptr<PythonPolicy> second;
    int64_t num_rejected = 0;
    for (int64_t step = 20; step < 26; ++step) {
      first->BeginStep(PolicyVersion(step), {.occupancy = 9});
      if (second != nullptr) second->BeginStep(PolicyVersion(step), {.occupancy = 9});
      for (int64_t id = 0; id < 5; ++id) {
        // In the middle of a step.
        if (step == 22 && id == 2) {
          second = Open(name);
          ASSERT_TRUE(second->Restore(first->Save()).ok());
        }
        const std::vector<MemberSummary> members =
            RandomMembers(static_cast<uint64_t>(step * 100 + id));
        const GroupSummary group = GroupOf(id, members);
        const Decision a = first->Judge(group);
        num_rejected += a.verdict == Verdict::kReject ? 1 : 0;
        if (second != nullptr) {
          const Decision b = second->Judge(group);
          EXPECT_EQ(a.verdict, b.verdict);
          EXPECT_EQ(a.score, b.score);
          second->Observe(group, b);
        }
        first->Observe(group, a);
      }
    }
    EXPECT_GT(num_rejected, 0);
    EXPECT_EQ(FailureOf(name, *first), "none");
  }
}

TEST_F(PythonPolicyTest, AStateThatCannotBeSavedIsFoundInTheFirstStep) {
  const auto policy = Open("Queue", /*saved=*/true);
  policy->BeginStep(PolicyVersion(0), {.occupancy = 1});
  EXPECT_EQ(FailureOf("Queue", *policy),
            "state: invalid: seen is a deque, which a checkpoint does not hold (give the class "
            "state() and restore(state))");
  const auto unsaved = Open("Queue");
  unsaved->BeginStep(PolicyVersion(0), {.occupancy = 1});
  EXPECT_EQ(FailureOf("Queue", *unsaved), "none");
}

TEST_F(PythonPolicyTest, AFaultIsOneLine) {
  EXPECT_EQ(FaultOf("Raises"), "judge of group 7: exception: ValueError: mine (mine.py:29)");
  EXPECT_EQ(FaultOf("Exits"), "judge of group 7: crash: its process ended");
  EXPECT_EQ(FaultOf("Nothing"),
            "judge of group 7: invalid: gave NoneType instead of True, False or a Decision");
  EXPECT_EQ(FaultOf("Nan"), "judge of group 7: invalid: gave nan as score");
  EXPECT_EQ(FaultOf("Mood"),
            "judge of group 7: invalid: gave the reason mood, which is none of pace");
  EXPECT_LT(FaultOf("Long").size(), 600U);
  EXPECT_EQ(FaultOf("Forks"), "none");
  options_.timeout = 0.2;
  EXPECT_EQ(FaultOf("Hangs"),
            "judge of group 7: timeout: did not return within 0.2 s (admission.timeout)");
}

TEST_F(PythonPolicyTest, NothingIsAskedAfterAFault) {
  const auto policy = Open("Raises");
  policy->BeginStep(PolicyVersion(20), {.occupancy = 3});
  const std::vector<MemberSummary> members = RandomMembers(1);
  (void)policy->Judge(GroupOf(7, members));
  const std::string first = FailureOf("Raises", *policy);
  (void)policy->Judge(GroupOf(8, members));
  EXPECT_EQ(policy->Score(GroupOf(8, members)), GroupOf(8, members).LagAt(PolicyVersion(20)));
  EXPECT_EQ(FailureOf("Raises", *policy), first);
}

TEST_F(PythonPolicyTest, WhatCannotBeMadeIsRefused) {
  EXPECT_EQ(FailureOf("NoJudge", *Open("NoJudge")), "AttributeError: NoJudge has no method judge");
  EXPECT_EQ(FailureOf("Other", *Open("Other")), "AttributeError: no class Other");
  EXPECT_EQ(FailureOf("Members", *Open("Members")),
            "AttributeError: needs_members: a run shows its policy whole groups only");
  options_.python_class = "python:" + file_;
  EXPECT_EQ(OpenAdmissionPolicy(options_, 2, 1).status().message().find("admission.policy = "), 0U);
  options_.python_class = Concat("python:", file_, ":Freshest");
  EXPECT_TRUE(OpenAdmissionPolicy(options_, 2, 1).ok());
  options_.python = "/nowhere/python";
  EXPECT_NE(OpenAdmissionPolicy(options_, 2, 1).status().message().find("admission.python"),
            std::string::npos);
}

TEST_F(PythonPolicyTest, AStateOfAnotherPolicyIsRefused) {
  const auto policy = Open("Window");
  EXPECT_FALSE(policy->Restore(AcceptAll(nullptr).Save()).ok());
  EXPECT_FALSE(policy->Restore({.python = "{"}).ok());
}

}  // namespace
}  // namespace pace
