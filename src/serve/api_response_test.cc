#include "serve/api_response.h"

#include <gtest/gtest.h>

#include "rollout/test_tokenizers.h"

namespace pace {
namespace {

// 26 letters; an end.
class ApiResponseTest : public ::testing::Test {
 protected:
  ApiResponseTest() {
    config_.vocab_size = 27;
    config_.eos = {26};
    rules_ = {.config = &config_, .tokenizer = &tokenizer_, .max_model_len = 64};
  }
  static GenerateRequest Request(ApiKind kind) {
    GenerateRequest request;
    request.kind = kind;
    return request;
  }
  static Generation Generated(std::string_view letters, std::optional<FinishReason> reason) {
    Generation generation;
    for (const char c : letters) {
      generation.tokens.push_back(
          {.id = c - 'a', .logprob = -0.5F - 0.25F * static_cast<float>(generation.tokens.size())});
    }
    generation.reason = reason;
    return generation;
  }
  std::string Answer(const GenerateRequest& request, const Generation& generation) const {
    return AnswerText(head_, request, prompt_, generation, rules_);
  }

  ModelConfig config_;
  Tokenizer tokenizer_ = LetterTokenizer(26);
  PromptRules rules_;
  const AnswerHead head_{.id = "x-1", .model = "m", .created = 5};
  const std::vector<TokenId> prompt_ = {3, 4, 5};
};

TEST_F(ApiResponseTest, TokensHaveVllmsKeys) {
  GenerateRequest request = Request(ApiKind::kTokens);
  request.logprobs = true;
  Generation generation = Generated("ab", FinishReason::kMaxTokens);
  generation.weight_versions = {{"v1", 0, 1}, {"v2", 1, 2}};
  EXPECT_EQ(
      Answer(request, generation),
      R"({"request_id":"x-1","output_mode":"tokens","created":5,"model":"m","choices":[{"index":0,)"
      R"("logprobs":{"content":[{"token_id":0,"logprob":-0.5,"rank":null,"top_logprobs":)"
      R"([{"token_id":0,"logprob":-0.5,"rank":null}]},{"token_id":1,"logprob":-0.75,"rank":null,)"
      R"("top_logprobs":[{"token_id":1,"logprob":-0.75,"rank":null}]}]},"finish_reason":"length",)"
      R"("stop_reason":null,"token_ids":[0,1],"routed_experts":null,"weight_versions":)"
      R"([{"version":"v1","start":0,"end":1},{"version":"v2","start":1,"end":2}]}],"usage":)"
      R"({"prompt_tokens":3,"total_tokens":5,"completion_tokens":2,"prompt_tokens_details":null},)"
      R"("prompt_logprobs":null,"prompt_token_ids":null,"kv_transfer_params":null})");
}

TEST_F(ApiResponseTest, PromptScoresBeginWithNull) {
  GenerateRequest request = Request(ApiKind::kTokens);
  request.prompt_logprobs = true;
  Generation generation = Generated("a", FinishReason::kMaxTokens);
  generation.prompt_logprobs = {-1.5F, -2.0F};
  const std::string answer = Answer(request, generation);
  EXPECT_NE(answer.find(R"("prompt_logprobs":[null,{"4":{"logprob":-1.5,"rank":null,)"
                        R"("decoded_token":"e"}},{"5":{"logprob":-2,"rank":null,)"
                        R"("decoded_token":"f"}}])"),
            std::string::npos)
      << answer;
}

TEST_F(ApiResponseTest, ReasonsAreVllms) {
  const auto reason = [&](const GenerateRequest& request, const Generation& generation) {
    const std::string answer = Answer(request, generation);
    const size_t at = answer.find("\"finish_reason\"");
    return answer.substr(at, answer.find(",\"token_ids\"") - at);
  };
  GenerateRequest request = Request(ApiKind::kTokens);
  request.stop = {"b"};
  request.stop_token_ids = {2};
  EXPECT_EQ(reason(request, Generated("a", std::nullopt)),
            R"("finish_reason":"abort","stop_reason":null)");
  EXPECT_EQ(reason(request, Generated("ab", FinishReason::kStopString)),
            R"("finish_reason":"stop","stop_reason":"b")");
  EXPECT_EQ(reason(request, Generated("ac", FinishReason::kStopToken)),
            R"("finish_reason":"stop","stop_reason":2)");
  Generation ended = Generated("a", FinishReason::kStopToken);
  ended.tokens.push_back({.id = 26});
  EXPECT_EQ(reason(request, ended), R"("finish_reason":"stop","stop_reason":null)");
}

TEST_F(ApiResponseTest, NumbersThatJsonLacksAreClamped) {
  GenerateRequest request = Request(ApiKind::kTokens);
  request.logprobs = true;
  Generation generation = Generated("ab", FinishReason::kMaxTokens);
  generation.tokens[0].logprob = -std::numeric_limits<float>::infinity();
  generation.tokens[1].logprob = std::numeric_limits<float>::quiet_NaN();
  const std::string answer = Answer(request, generation);
  EXPECT_NE(answer.find(R"({"token_id":0,"logprob":-9999,)"), std::string::npos);
  EXPECT_NE(answer.find(R"({"token_id":1,"logprob":-9999,)"), std::string::npos);
}

TEST_F(ApiResponseTest, CompletionsHaveATextAndItsLogprobs) {
  GenerateRequest request = Request(ApiKind::kCompletion);
  request.logprobs = true;
  request.return_token_ids = true;
  EXPECT_EQ(
      Answer(request, Generated("abz", FinishReason::kStopToken)),
      R"({"id":"x-1","object":"text_completion","created":5,"model":"m","choices":[{"index":0,)"
      R"("text":"ab","logprobs":{"text_offset":[0,1,2],"token_logprobs":[-0.5,-0.75,-1],)"
      R"("tokens":["a","b","z"],"top_logprobs":[{"a":-0.5},{"b":-0.75},{"z":-1}]},)"
      R"("finish_reason":"stop","stop_reason":25,"token_ids":[0,1,25],"prompt_logprobs":null,)"
      R"("prompt_token_ids":[3,4,5]}],"usage":{"prompt_tokens":3,"total_tokens":6,)"
      R"("completion_tokens":3,"prompt_tokens_details":null},"kv_transfer_params":null})");
}

TEST_F(ApiResponseTest, ChatsHaveAMessage) {
  GenerateRequest request = Request(ApiKind::kChat);
  request.logprobs = true;
  EXPECT_EQ(
      Answer(request, Generated("a", FinishReason::kMaxTokens)),
      R"({"id":"x-1","object":"chat.completion","created":5,"model":"m","choices":[{"index":0,)"
      R"("message":{"role":"assistant","content":"a","refusal":null},"logprobs":{"content":)"
      R"([{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}]},"finish_reason":"length",)"
      R"("stop_reason":null,"token_ids":null}],"usage":{"prompt_tokens":3,"total_tokens":4,)"
      R"("completion_tokens":1,"prompt_tokens_details":null},"prompt_logprobs":null,)"
      R"("prompt_token_ids":null,"kv_transfer_params":null})");
}

TEST_F(ApiResponseTest, AStreamHasOneEventPerHandOverAndAnEnd) {
  GenerateRequest request = Request(ApiKind::kTokens);
  request.stream = true;
  request.stream_usage = true;
  Generation generation = Generated("abc", FinishReason::kMaxTokens);
  generation.weight_versions = {{"v1", 0, 3}};
  AnswerStream stream(head_, request, prompt_, rules_);
  EXPECT_EQ(stream.Tokens({}), "");
  EXPECT_EQ(stream.Tokens(std::span(generation.tokens).first(1)),
            R"(data: {"request_id":"x-1","output_mode":"tokens","choices":[{"index":0,)"
            R"("logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":[0],)"
            R"("weight_versions":null}]})"
            "\n\n");
  EXPECT_EQ(stream.Finish(generation),
            R"(data: {"request_id":"x-1","output_mode":"tokens","choices":[{"index":0,)"
            R"("logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":[1,2],)"
            R"("weight_versions":[{"version":"v1","start":0,"end":3}]}]})"
            "\n\n"
            R"(data: {"request_id":"x-1","output_mode":"tokens","choices":[],"usage":)"
            R"({"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,)"
            R"("prompt_tokens_details":null}})"
            "\n\ndata: [DONE]\n\n");
}

TEST_F(ApiResponseTest, AStreamedTextIsTheWholeText) {
  GenerateRequest request = Request(ApiKind::kCompletion);
  request.stream = true;
  request.stop = {"cd"};
  const Generation generation = Generated("abcd", FinishReason::kStopString);
  AnswerStream stream(head_, request, prompt_, rules_);
  std::string events;
  for (size_t i = 0; i < 3; ++i) {
    events += stream.Tokens(std::span(generation.tokens).subspan(i, 1));
  }
  events += stream.Finish(generation);
  std::string text;
  for (size_t at = events.find("\"text\":\""); at != std::string::npos;
       at = events.find("\"text\":\"", at)) {
    at += 8;
    text += events.substr(at, events.find('"', at) - at);
  }
  EXPECT_EQ(text, "ab");
}

TEST_F(ApiResponseTest, ErrorsHaveVllmsShape) {
  EXPECT_EQ(ErrorText({.code = 400, .message = "m"}),
            R"({"error":{"message":"m","type":"BadRequestError","param":null,"code":400}})");
  EXPECT_EQ(ErrorText({.code = 404, .message = "m", .param = "model"}),
            R"({"error":{"message":"m","type":"NotFoundError","param":"model","code":404}})");
}

TEST_F(ApiResponseTest, TokenizeCountsTokens) {
  EXPECT_EQ(TokenizeAnswer(prompt_, {.return_token_strs = true}, rules_),
            R"({"count":3,"max_model_len":64,"tokens":[3,4,5],"token_strs":["d","e","f"]})");
  EXPECT_EQ(TokenizeAnswer(prompt_, {}, rules_),
            R"({"count":3,"max_model_len":64,"tokens":[3,4,5],"token_strs":null})");
  EXPECT_EQ(DetokenizeAnswer(prompt_, tokenizer_), R"({"prompt":"def"})");
}

}  // namespace
}  // namespace pace
