// Environments in processes. No test waits for a time of its own: what is slow is ended by the
// pool.
#include "judge/environment_pool.h"

#include <gtest/gtest.h>

#include <string>

#include "core/test_files.h"

namespace pace {
namespace {

// Counts its turns; `log` says what was called in this process.
constexpr char kCounter[] = R"(
import os, time
calls = []
class Env:
    tools = [{"type": "function", "function": {"name": "count"}}]
    def reset(self, problem):
        calls.append("reset " + problem["id"])
        self.count = 0
    def step(self, turn):
        text = turn["text"]
        calls.append("step " + text)
        self.count += 1
        if text == "raise": raise ValueError("mine")
        if text == "exit": os._exit(1)
        if text == "hang": time.sleep(1000)
        if text == "nothing": return None
        if text == "nan": return "", float("nan"), False
        if text == "talk": return [{"role": "user", "content": "why?"}], None, False
        if text == "log": return ", ".join(calls), None, False
        return str(self.count), 0.5, text == "end", {"correct": True, "left": 3}
)";
constexpr char kWithState[] = R"(
class Saved(Env):
    def state(self): return {"count": self.count}
    def restore(self, problem, state):
        calls.append("restore " + problem["id"])
        self.count = state["count"]
)";

class EnvironmentPoolTest : public testing::Test {
 protected:
  Result<std::unique_ptr<EnvironmentPool>> TryOpen(const std::string& source,
                                                   const std::string& name) {
    const std::filesystem::path folder = ScratchFolder();
    file_ = WriteFile(folder / "env.py", source);
    return EnvironmentPool::Open({(folder / "env.py").string(), name}, limits_);
  }
  std::unique_ptr<EnvironmentPool> Open(const std::string& name = "Env") {
    auto pool = TryOpen(Concat(kCounter, kWithState), name);
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    return pool.ok() ? std::move(pool).value() : nullptr;
  }
  static EnvironmentTurn Turn(const std::string& key, const std::vector<std::string>& texts) {
    EnvironmentTurn turn;
    turn.key = key;
    turn.problem.id = "p7";
    turn.problem.prompt = "\"how many?\"";
    for (const std::string& text : texts) turn.turns.push_back({.text = text});
    return turn;
  }

  EnvironmentLimits limits_{.num_workers = 1};
  std::string file_;
};

TEST_F(EnvironmentPoolTest, AnEnvironmentLivesAsLongAsItsResponse) {
  const auto pool = Open();
  EXPECT_EQ(pool->tools(), R"([{"type": "function", "function": {"name": "count"}}])");
  EXPECT_EQ(pool->Take(Turn("a", {"x"})).observation, "1");
  EXPECT_EQ(pool->Take(Turn("b", {"x"})).observation, "1");
  const EnvironmentStep step = pool->Take(Turn("a", {"x", "y"}));
  EXPECT_EQ(step.observation, "2");
  EXPECT_EQ(step.reward, 0.5);
  EXPECT_EQ(step.correct, true);
  EXPECT_EQ(step.detail, R"({"left": 3})");
  EXPECT_FALSE(step.done);
  EXPECT_TRUE(pool->Take(Turn("a", {"x", "y", "end"})).done);
  EXPECT_EQ(pool->Take(Turn("b", {"x", "log"})).observation,
            "reset p7, step x, reset p7, step x, step y, step end, step log");
}

TEST_F(EnvironmentPoolTest, AnotherPoolReplaysTheTurns) {
  const auto pool = Open();
  EXPECT_EQ(pool->Take(Turn("a", {"x", "y", "z"})).observation, "3");
  EXPECT_EQ(pool->Take(Turn("a", {"x", "y", "z", "log"})).observation,
            "reset p7, step x, step y, step z, step log");
}

TEST_F(EnvironmentPoolTest, AnotherPoolBeginsWithTheStateWhereThereIsOne) {
  std::string state;
  {
    const auto pool = Open("Saved");
    const EnvironmentStep step = pool->Take(Turn("a", {"x", "y"}));
    EXPECT_EQ(step.state, R"({"count": 2})");
    state = step.state;
  }
  const auto pool = Open("Saved");
  EnvironmentTurn turn = Turn("a", {"x", "y", "z", "log"});
  turn.state = state;
  turn.num_restored = 2;
  EXPECT_EQ(pool->Take(turn).observation, "restore p7, step z, step log");
  EXPECT_EQ(pool->Take(Turn("a", {"x", "y", "z", "log", "n"})).observation, "5");
}

TEST_F(EnvironmentPoolTest, FaultsAreNamedAndOthersGoOn) {
  limits_.timeout = Seconds(0.5);
  const auto pool = Open();
  EXPECT_EQ(pool->Take(Turn("a", {"x"})).observation, "1");
  const struct {
    std::string text;
    RewardFault fault;
    std::string message;
  } kinds[] = {{"raise", RewardFault::kException, "ValueError: mine (env.py:13)"},
               {"exit", RewardFault::kCrash, "its process ended"},
               {"hang", RewardFault::kTimeout, "did not return within 0.5 s"},
               {"nothing", RewardFault::kInvalid, "gave no (observation, reward, done)"},
               {"nan", RewardFault::kInvalid, "gave nan as score"}};
  for (const auto& kind : kinds) {
    const EnvironmentStep step = pool->Take(Turn("bad " + kind.text, {kind.text}));
    EXPECT_EQ(step.fault, kind.fault) << kind.text;
    EXPECT_EQ(step.fault_message, kind.message);
  }
  // Its process ended twice; it was made again.
  EXPECT_EQ(pool->Take(Turn("a", {"x", "y"})).observation, "2");
}

TEST_F(EnvironmentPoolTest, ObservationsMayBeMessages) {
  const auto pool = Open();
  const EnvironmentStep step = pool->Take(Turn("a", {"talk"}));
  ASSERT_EQ(step.messages.size(), 1U);
  EXPECT_EQ(step.messages[0], std::pair(std::string("user"), std::string("why?")));
  EXPECT_FALSE(step.reward.has_value());
}

TEST_F(EnvironmentPoolTest, WhatIsNoEnvironmentIsRefused) {
  const auto message = [&](const std::string& source, const std::string& name) {
    return TryOpen(source, name).status().message();
  };
  EXPECT_NE(message("class Env:\n  def reset(self, p): pass\n", "Env").find("no method step"),
            std::string::npos);
  EXPECT_NE(message("x = 1\n", "Env").find("no class Env"), std::string::npos);
  EXPECT_NE(message("1 / 0\n", "Env").find("ZeroDivisionError: division by zero (env.py:1)"),
            std::string::npos);
}

TEST(EnvironmentTurnTest, OnlyStepsAreRead) {
  EXPECT_TRUE(ParseStep(R"({"done": true})").ok());
  EXPECT_EQ(ParseStep(R"({"done": true, "reward": -1.5})")->reward, -1.5);
  EXPECT_EQ(ParseStep(R"({"error": "a\nb"})")->fault_message, "a b");
  for (const char* wrong : {"", "[]", R"({"done": 1})", R"({"reward": NaN})", R"({"other": 1})",
                            R"({"messages": [{"role": 1}]})"}) {
    EXPECT_FALSE(ParseStep(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace pace
