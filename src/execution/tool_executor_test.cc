#include "execution/tool_executor.h"

#include <gtest/gtest.h>

#include <vector>

namespace pace {
namespace {

// Says what it was asked to run.
class FakeRunner final : public ProgramRunner {
 public:
  explicit FakeRunner(std::vector<std::string>& asked) : asked_(asked) {}

  Result<ProgramResult> Run(const ProgramRequest& request, const Cancellation&) override {
    asked_.push_back(request.code);
    ProgramResult result;
    result.time = Seconds(0.5);
    if (request.code == "lost") return Unavailable("no sandbox");
    if (request.code == "slow") {
      result.outcome = ProgramOutcome::kTimeLimit;
      result.out = "half";
      return result;
    }
    result.return_code = request.code == "bad" ? 1 : 0;
    result.out = request.code == "bytes" ? "\xFF" : "out\n";
    if (request.code == "bad") result.error = "error\n";
    return result;
  }

 private:
  std::vector<std::string>& asked_;
};

class ToolExecutorTest : public testing::Test {
 protected:
  ToolReply Ask(const std::string& arguments, const std::string& name = "code_interpreter") {
    const Result<ToolReply> reply =
        executor_.Answer(ToolCall{.name = name, .arguments = arguments});
    EXPECT_TRUE(reply.ok()) << reply.status().message();
    return reply.ok() ? *reply : ToolReply{};
  }

  std::vector<std::string> asked_;
  ToolExecutor executor_{std::make_unique<FakeRunner>(asked_), false};
};

TEST_F(ToolExecutorTest, APrintedTextIsTheReply) {
  const ToolReply reply = Ask(R"x({"code": "print('x')"})x");
  EXPECT_EQ(asked_, std::vector<std::string>{"print('x')"});
  EXPECT_EQ(reply.text, "out\n");
  EXPECT_FALSE(reply.failed);
  EXPECT_EQ(reply.time, Seconds(0.5));
}

TEST_F(ToolExecutorTest, AProgramThatFailsIsReadToTheEnd) {
  const ToolReply reply = Ask(R"({"code": "bad"})");
  EXPECT_EQ(reply.text, "out\nerror\n");
  EXPECT_TRUE(reply.failed);
}

TEST_F(ToolExecutorTest, AProgramThatWasEndedSaysNothing) {
  const ToolReply reply = Ask(R"({"code": "slow"})");
  EXPECT_EQ(reply.text, "no stdout here");
  EXPECT_TRUE(reply.failed);
  EXPECT_TRUE(reply.timed_out);
}

TEST_F(ToolExecutorTest, CallsThatNameNoProgramAreToldSo) {
  EXPECT_EQ(Ask("{}", "calculator").text, "Error when executing tool: 'calculator'");
  EXPECT_EQ(Ask("[1]").text, "Error when executing tool: 'list' object has no attribute 'get'");
  EXPECT_EQ(Ask("\"x\"").text, "Error when executing tool: 'str' object has no attribute 'get'");
  EXPECT_TRUE(Ask("3").failed);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(ToolExecutorTest, CodeThatIsNoTextIsShownAsPythonWould) {
  Ask("{}");
  Ask(R"({"code": 17})");
  Ask(R"({"code": ["a"]})");
  EXPECT_EQ(asked_, (std::vector<std::string>{"", "17", "['a']"}));
}

TEST_F(ToolExecutorTest, BytesThatAreNoTextAreNamed) {
  EXPECT_TRUE(Ask(R"({"code": "bytes"})").text.starts_with("[DecodeError]"));
}

TEST_F(ToolExecutorTest, ARunnerThatFailsIsAnError) {
  EXPECT_FALSE(executor_.Answer(ToolCall{"code_interpreter", R"({"code": "lost"})"}).ok());
}

TEST_F(ToolExecutorTest, ALostCallIsAFailedReplyAndManyInARowAnError) {
  const ToolCall lost{"code_interpreter", R"({"code": "lost"})"};
  const ToolCall fine{"code_interpreter", R"({"code": "a"})"};
  for (int round = 0; round < 2; ++round) {
    for (int64_t count = 1; count < ToolExecutor::kMaxLostCalls; ++count) {
      const Result<ToolReply> reply = executor_.AnswerOrFail(lost);
      ASSERT_TRUE(reply.ok()) << count;
      EXPECT_TRUE(reply->failed);
      EXPECT_EQ(reply->text, "Error when executing tool: no sandbox");
    }
    if (round == 0) {
      EXPECT_EQ(executor_.AnswerOrFail(fine)->text, "out\n");
    }
  }
  const Result<ToolReply> last = executor_.AnswerOrFail(lost);
  ASSERT_FALSE(last.ok());
  EXPECT_NE(last.status().message().find("64 calls in a row"), std::string::npos);
}

TEST(ToolExecutorReuseTest, AKnownProgramIsNotRunAgainUnlessItWasEnded) {
  std::vector<std::string> asked;
  ToolExecutor executor(std::make_unique<FakeRunner>(asked), true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(executor.Answer(ToolCall{"code_interpreter", R"({"code": "a"})"})->text, "out\n");
    EXPECT_EQ(executor.Answer(ToolCall{"code_interpreter", R"({"code": "slow"})"})->text,
              "no stdout here");
  }
  EXPECT_EQ(asked, (std::vector<std::string>{"a", "slow", "slow", "slow"}));
}

TEST(ToolExecutorOpenTest, WithoutToolsThereIsNone) {
  const auto executor = ToolExecutor::Open(ToolsOptions{});
  ASSERT_TRUE(executor.ok());
  EXPECT_EQ(*executor, nullptr);
}

}  // namespace
}  // namespace pace
