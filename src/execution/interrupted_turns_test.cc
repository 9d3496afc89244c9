// A multi-turn trajectory of a real model, interrupted at every token boundary: by a sync
// to the same weights, and by a move to another engine as a checkpoint makes it.
#include <gtest/gtest.h>

#include "execution/engine_maker.h"
#include "execution/policy.h"
#include "execution/prompt_source.h"
#include "execution/tool_executor.h"
#include "rollout/turn_count.h"

namespace pace {
namespace {

// Python enough: a program with a letter x in its numbers does not run.
class FakePython final : public ProgramRunner {
 public:
  Result<ProgramResult> Run(const ProgramRequest& request, const Cancellation&) override {
    ProgramResult result;
    const bool runs = request.code.find('x') == std::string::npos;
    result.return_code = runs ? 0 : 1;
    (runs ? result.out : result.error) = runs ? "1234\n" : "SyntaxError: invalid decimal literal\n";
    return result;
  }
};

class InterruptedTurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Settings> settings =
        LoadSettings("tiny-retool", {"engine.kv_mib=8", "engine.threads=1"});
    ASSERT_TRUE(settings.ok()) << settings.status().message();
    settings_ = *settings;
    Result<Policy> policy = LoadPolicy(settings_.policy);
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    policy_.emplace(*std::move(policy));
    Result<PromptSource> prompt_source = PromptSource::Create(settings_, *policy_);
    ASSERT_TRUE(prompt_source.ok()) << prompt_source.status().message();
    prompt_source_.emplace(*std::move(prompt_source));
  }

  std::unique_ptr<EngineCore> Engine(int64_t version) {
    Result<std::unique_ptr<EngineCore>> engine = MakeEngine(settings_, *policy_);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    Sync(**engine, version);
    return std::move(engine).value();
  }
  void Sync(EngineCore& engine, int64_t version) {
    const auto weights = engine.decoder().Prepare(policy_->weights);
    ASSERT_TRUE(weights.ok());
    ASSERT_TRUE(engine.Sync(PolicyVersion(version), *weights).ok());
  }

  enum class Interruption { kNone, kSync, kMove };

  // The response to a prompt; interrupted once it has `after` tokens, at rest too.
  PartialResponse Generate(int64_t prompt, Interruption how, size_t after) {
    std::unique_ptr<EngineCore> engine = Engine(1);
    GroupRequest request = *prompt_source_->RequestFor(GroupId(0), PromptIndex(prompt));
    request.num_responses = 1;
    EXPECT_TRUE(engine->Submit(request).ok());
    const MemberId id{GroupId(0), 0};
    bool interrupted = how == Interruption::kNone;
    while (true) {
      const PartialResponse* response = engine->Peek(id);
      if (!interrupted && response->tokens.size() >= after) {
        interrupted = true;
        if (how == Interruption::kSync) {
          Sync(*engine, 2);
        } else {
          std::vector<GroupRequest> moved = engine->Unfinished();
          engine = Engine(1);
          EXPECT_TRUE(engine->Submit(std::move(moved.at(0))).ok());
        }
        response = engine->Peek(id);
      }
      if (response->paused.has_value()) {
        const std::optional<ToolCall> call = prompt_source_->turns()->CallOf(*response);
        if (!call.has_value()) return engine->FinishPaused(id).response;
        const auto reply =
            prompt_source_->turns()->ReplyOf(*response, executor_.Answer(*call)->text);
        if (!reply->has_value()) return engine->FinishPaused(id).response;
        EXPECT_TRUE(engine->Continue(id, **reply).ok());
      }
      Result<StepReport> report = engine->Step();
      EXPECT_TRUE(report.ok());
      if (!report->finished.empty()) return std::move(report->finished.front().response);
    }
  }

  static std::vector<TokenId> Ids(const PartialResponse& response) {
    std::vector<TokenId> ids;
    for (const TokenRecord& token : response.tokens) ids.push_back(token.id);
    return ids;
  }

  Settings settings_;
  std::optional<Policy> policy_;
  std::optional<PromptSource> prompt_source_;
  ToolExecutor executor_{std::make_unique<FakePython>(), false};
};

TEST_F(InterruptedTurnsTest, SameTextAtEveryTokenBoundary) {
  int64_t num_multi_turn = 0;
  for (int64_t prompt = 0; prompt < 40 && num_multi_turn < 3; ++prompt) {
    const PartialResponse whole = Generate(prompt, Interruption::kNone, 0);
    if (CountTurns(whole).tool < (num_multi_turn == 0 ? 2 : 1)) continue;
    ++num_multi_turn;
    for (size_t after = 1; after < whole.tokens.size(); ++after) {
      if (whole.tokens[after].is_tool) continue;  // no boundary inside a reply
      const PartialResponse synced = Generate(prompt, Interruption::kSync, after);
      ASSERT_EQ(Ids(synced), Ids(whole)) << "prompt " << prompt << ", sync after " << after;
      EXPECT_EQ(synced.num_interrupts, 1);
      const PartialResponse moved = Generate(prompt, Interruption::kMove, after);
      ASSERT_EQ(moved, whole) << "prompt " << prompt << ", moved after " << after;
    }
  }
  EXPECT_EQ(num_multi_turn, 3) << "the model makes too few calls for this test";
}

}  // namespace
}  // namespace pace
