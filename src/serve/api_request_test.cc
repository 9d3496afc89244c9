#include "serve/api_request.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

GenerateRequest Read(ApiKind kind, const std::string& body) {
  Result<GenerateRequest> request = ReadGenerateRequest(kind, body);
  EXPECT_TRUE(request.ok()) << body << ": " << request.status().message();
  return request.ok() ? *request : GenerateRequest();
}

std::string ErrorOf(ApiKind kind, const std::string& body) {
  const Result<GenerateRequest> request = ReadGenerateRequest(kind, body);
  EXPECT_FALSE(request.ok()) << body;
  return request.ok() ? "" : request.status().message();
}

GenerateRequest Sampling(const std::string& params) {
  return Read(ApiKind::kTokens, R"({"token_ids": [1], "sampling_params": {)" + params + "}}");
}

std::string SamplingError(const std::string& params) {
  return ErrorOf(ApiKind::kTokens, R"({"token_ids": [1], "sampling_params": {)" + params + "}}");
}

TEST(TokensRequestTest, HasWhatAClientSays) {
  const GenerateRequest request = Read(ApiKind::kTokens, R"({
    "request_id": "run/3/0", "token_ids": [5, 0, 7], "model": "tiny", "stream": true,
    "stream_options": {"include_usage": true}, "priority": 0, "cache_salt": "s",
    "return_token_ids": true, "output_mode": "tokens",
    "sampling_params": {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 20,
      "min_p": 0.1, "seed": 11, "logprobs": 0, "stop_token_ids": [3], "stop": ["a", "b"],
      "ignore_eos": true, "skip_reading_prefix_cache": true, "detokenize": true, "n": 1}})");
  EXPECT_EQ(request.request_id, "run/3/0");
  EXPECT_EQ(request.token_ids, (std::vector<TokenId>{5, 0, 7}));
  EXPECT_EQ(request.model, "tiny");
  EXPECT_TRUE(request.stream && request.stream_usage && request.return_token_ids);
  EXPECT_EQ(request.max_tokens, 9);
  EXPECT_EQ(request.sampling,
            (SamplingOptions{.temperature = 0.5, .top_k = 20, .top_p = 0.9, .min_p = 0.1}));
  EXPECT_EQ(request.seed, 11U);
  EXPECT_TRUE(request.logprobs && request.ignore_eos);
  EXPECT_FALSE(request.prompt_logprobs);
  EXPECT_EQ(request.stop_token_ids, std::vector<TokenId>{3});
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
}

TEST(TokensRequestTest, NullsAndLimitsMeanWhatTheyMeanInVllm) {
  EXPECT_EQ(Sampling("").max_tokens, std::nullopt);
  EXPECT_EQ(Sampling(R"("max_tokens": null)").max_tokens, std::nullopt);
  EXPECT_EQ(Sampling(R"("seed": -1)").seed, std::nullopt);
  EXPECT_EQ(Sampling(R"("seed": -7)").seed, static_cast<uint64_t>(-7));
  EXPECT_EQ(Sampling(R"("top_k": -1)").sampling.top_k, 0);
  EXPECT_EQ(Sampling(R"("stop": "end")").stop, std::vector<std::string>{"end"});
  EXPECT_TRUE(Sampling(R"("logprobs": 1)").logprobs) << "vLLM counts the sampled token";
  EXPECT_FALSE(Sampling(R"("logprobs": null)").logprobs);
  EXPECT_TRUE(Sampling(R"("prompt_logprobs": 0)").prompt_logprobs);
  EXPECT_EQ(Sampling(R"("temperature": 0, "top_p": 0.5)").sampling,
            SamplingOptions{.temperature = 0})
      << "greedy cuts nothing";
}

TEST(TokensRequestTest, WhatAsksForNothingIsAccepted) {
  Sampling(R"("n": 1, "presence_penalty": 0.0, "frequency_penalty": 0, "repetition_penalty": 1.0,
    "min_tokens": 0, "logit_bias": null, "bad_words": [], "structured_outputs": null,
    "allowed_token_ids": null, "extra_args": {}, "thinking_token_budget": null,
    "spaces_between_special_tokens": true, "flat_logprobs": false)");
}

TEST(TokensRequestTest, WhatIsNotSupportedIsRefusedByName) {
  EXPECT_EQ(SamplingError(R"("n": 2)"), "sampling_params.n: only 1 is supported by this server");
  EXPECT_EQ(SamplingError(R"("presence_penalty": 0.5)"),
            "sampling_params.presence_penalty: only 0 is supported by this server");
  EXPECT_EQ(SamplingError(R"("logit_bias": {"1": 2})"),
            "sampling_params.logit_bias.1: is not supported by this server (leave it out)");
  EXPECT_EQ(SamplingError(R"("bad_words": ["x"])"),
            "sampling_params.bad_words[0]: is not supported by this server (leave it out)");
  EXPECT_EQ(SamplingError(R"("structured_outputs": {"json": "{}"})"),
            "sampling_params.structured_outputs.json: is not supported by this server (leave it "
            "out)");
  EXPECT_EQ(SamplingError(R"("logprobs": 5)"),
            "sampling_params.logprobs = 5: must be <= 1 (of the tokens themselves; alternatives "
            "are not supported)");
  EXPECT_EQ(SamplingError(R"("prompt_logprobs": 1)"),
            "sampling_params.prompt_logprobs = 1: must be <= 0 (of the tokens themselves; "
            "alternatives are not supported)");
  EXPECT_EQ(SamplingError(R"("temprature": 1)"), "sampling_params.temprature: unknown key");
}

TEST(TokensRequestTest, ValuesHaveTheirBounds) {
  EXPECT_EQ(SamplingError(R"("temperature": -1)"),
            "sampling_params.temperature = -1: must be >= 0");
  EXPECT_EQ(SamplingError(R"("top_p": 0)"), "sampling_params.top_p: must be > 0");
  EXPECT_EQ(SamplingError(R"("max_tokens": 0)"), "sampling_params.max_tokens = 0: must be >= 1");
  EXPECT_EQ(SamplingError(R"("stop": "")"), "sampling_params.stop: must be UTF-8 and not empty");
  EXPECT_EQ(SamplingError(R"("stop": "a", "detokenize": false)"),
            "sampling_params.stop: needs detokenize = true");
  EXPECT_EQ(ErrorOf(ApiKind::kTokens, R"({"sampling_params": {}})"), "token_ids: field required");
  EXPECT_EQ(ErrorOf(ApiKind::kTokens, R"({"token_ids": [1]})"), "sampling_params: field required");
  EXPECT_EQ(ErrorOf(ApiKind::kTokens, R"({"token_ids": [-1], "sampling_params": {}})"),
            "token_ids[0] = -1: must be >= 0");
  EXPECT_EQ(ErrorOf(ApiKind::kTokens, "[]"), "must be an object in braces");
  EXPECT_EQ(ErrorOf(ApiKind::kTokens,
                    R"({"token_ids": [1], "sampling_params": {"prompt_logprobs": 0},
                        "stream": true})"),
            "prompt_logprobs: are not available with stream = true");
}

TEST(CompletionRequestTest, TakesATextOrTokens) {
  EXPECT_EQ(Read(ApiKind::kCompletion, R"({"prompt": "abc"})").prompt, "abc");
  EXPECT_EQ(Read(ApiKind::kCompletion, R"({"prompt": ["abc"]})").prompt, "abc");
  EXPECT_EQ(Read(ApiKind::kCompletion, R"({"prompt": [1, 2]})").token_ids,
            (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(Read(ApiKind::kCompletion, R"({"prompt": [[1, 2]]})").token_ids,
            (std::vector<TokenId>{1, 2}));
  for (const char* prompt : {R"(["a", "b"])", R"([[1], [2]])", R"([1, "a"])", R"(["a", 1])"}) {
    EXPECT_NE(ErrorOf(ApiKind::kCompletion, Concat(R"({"prompt": )", prompt, "}"))
                  .find("must be one text or one list of token ids"),
              std::string::npos)
        << prompt;
  }
  EXPECT_EQ(ErrorOf(ApiKind::kCompletion, R"({"prompt": ""})"), "prompt: must not be empty");
  EXPECT_EQ(ErrorOf(ApiKind::kCompletion, "{}"), "prompt: field required");
}

TEST(CompletionRequestTest, HasOpenAisDefaultsAndKeys) {
  EXPECT_EQ(Read(ApiKind::kCompletion, R"({"prompt": "a"})").max_tokens, 16);
  EXPECT_EQ(Read(ApiKind::kCompletion, R"({"prompt": "a", "max_tokens": null})").max_tokens, 16);
  EXPECT_TRUE(Read(ApiKind::kCompletion, R"({"prompt": "a", "logprobs": 0})").logprobs);
  Read(ApiKind::kCompletion, R"({"prompt": "a", "user": "u", "best_of": 1, "suffix": null,
    "echo": false, "response_format": {"type": "text"}})");
  EXPECT_EQ(ErrorOf(ApiKind::kCompletion, R"({"prompt": "a", "echo": true})"),
            "echo: is not supported by this server (leave it out)");
  EXPECT_EQ(ErrorOf(ApiKind::kCompletion, R"({"prompt": "a", "logprobs": 3})"),
            "logprobs = 3: must be <= 0 (of the tokens themselves; alternatives are not "
            "supported)");
  EXPECT_EQ(
      ErrorOf(ApiKind::kCompletion, R"({"prompt": "a", "response_format": {"type": "json"}})"),
      "response_format.type = json: only text is supported by this server");
  EXPECT_EQ(ErrorOf(ApiKind::kCompletion,
                    R"({"prompt": "a", "stream_options": {"include_usage": true}})"),
            "stream_options: needs stream = true");
}

TEST(ChatRequestTest, TakesMessagesWithTextParts) {
  const GenerateRequest request = Read(ApiKind::kChat, R"({"messages": [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
    "max_completion_tokens": 5, "logprobs": true, "top_logprobs": 0,
    "chat_template_kwargs": {"enable_thinking": false}, "tools": [], "tool_choice": "none"})");
  ASSERT_TRUE(request.messages.has_value());
  EXPECT_EQ(request.messages->list()[1].dict().Find("content")->text(), "a\nb");
  EXPECT_EQ(request.max_tokens, 5);
  EXPECT_TRUE(request.logprobs);
  EXPECT_FALSE(request.add_special_tokens);
  EXPECT_NE(request.template_variables.Find("enable_thinking"), nullptr);
}

TEST(ChatRequestTest, RefusesToolsAndImages) {
  EXPECT_EQ(ErrorOf(ApiKind::kChat, R"({"messages": [{"role": "user", "content": "a"}],
                                        "tools": [{"type": "function"}]})"),
            "tools[0]: is not supported by this server (leave it out)");
  EXPECT_EQ(ErrorOf(ApiKind::kChat, R"({"messages": [{"role": "user", "content":
                                        [{"type": "image_url"}]}]})"),
            R"(messages[0].content[0]: must be {"type": "text", "text": ...})");
  EXPECT_EQ(ErrorOf(ApiKind::kChat, R"({"messages": []})"),
            "messages: must be a list of at least one message");
  EXPECT_EQ(ErrorOf(ApiKind::kChat, R"({"messages": [{"content": "a"}]})"),
            "messages[0].role: must be a text");
  EXPECT_EQ(ErrorOf(ApiKind::kChat, "{}"), "messages: field required");
}

TEST(TokenizeRequestTest, TakesATextOrMessages) {
  const Result<TokenizeRequest> text =
      ReadTokenizeRequest(R"({"prompt": "ab", "return_token_strs": true})");
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text->return_token_strs && text->prompt.add_special_tokens);
  const Result<TokenizeRequest> chat =
      ReadTokenizeRequest(R"({"messages": [{"role": "user", "content": "a"}]})");
  ASSERT_TRUE(chat.ok());
  EXPECT_FALSE(chat->prompt.add_special_tokens);
  EXPECT_FALSE(ReadTokenizeRequest("{}").ok());
  EXPECT_EQ(ReadDetokenizeRequest(R"({"tokens": [1, 2]})")->tokens, (std::vector<TokenId>{1, 2}));
  EXPECT_FALSE(ReadDetokenizeRequest("{}").ok());
}

}  // namespace
}  // namespace pace
