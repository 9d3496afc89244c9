#include "engines/dialect.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engines/answer_check.h"
#include "http/message.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

GenerateCall ACall() {
  GenerateCall call;
  call.id = "r-1-0-1";
  call.tokens = {1, 2, 3, 7, 8};
  call.max_tokens = 4;
  call.stop_tokens = {9};
  call.seed = 6;
  return call;
}

GenerateAnswer Read(const Dialect& dialect, const GenerateCall& call, const std::string& body) {
  const Result<GenerateAnswer> answer = dialect.ReadGenerate(call, body);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? *answer : GenerateAnswer();
}

std::string ErrorOf(const Dialect& dialect, const std::string& body) {
  const Result<GenerateAnswer> answer = dialect.ReadGenerate(ACall(), body);
  return answer.ok() ? "accepted" : answer.status().message();
}

TEST(VllmDialectTest, WritesRequestsAsTheServerReadsThem) {
  GenerateCall call = ACall();
  const HttpCall plain = VllmDialect().Generate(call);
  EXPECT_EQ(plain.target, "/inference/v1/generate");
  EXPECT_EQ(plain.body,
            R"({"request_id":"r-1-0-1","token_ids":[1,2,3,7,8],"sampling_params":{)"
            R"("max_tokens":4,"temperature":1,"top_p":1,"top_k":0,"min_p":0,"seed":3,)"
            R"("logprobs":0,"ignore_eos":true,"stop_token_ids":[9],"detokenize":false}})");
  call.seed.reset();
  EXPECT_EQ(VllmDialect().Generate(call).body.find("seed"), std::string::npos);
  call.first_scored = 3;
  call.stop_strings = {"\"end\""};
  const std::string scored = VllmDialect().Generate(call).body;
  EXPECT_NE(scored.find(R"("prompt_logprobs":0)"), std::string::npos);
  EXPECT_NE(scored.find(R"("stop":["\"end\""])"), std::string::npos);
  EXPECT_EQ(scored.find("detokenize"), std::string::npos);
}

TEST(VllmDialectTest, ReadsTokensVersionsAndScores) {
  GenerateCall call = ACall();
  call.first_scored = 3;
  const GenerateAnswer answer = Read(VllmDialect(), call, R"({
      "request_id": "generate-tokens-r-1-0-1", "usage": {"total_tokens": 7},
      "choices": [{"index": 0, "finish_reason": "stop", "stop_reason": 9, "token_ids": [4, 9],
        "logprobs": {"content": [{"token_id": 4, "logprob": -0.5, "rank": 1, "top_logprobs": []},
                                 {"token_id": 9, "logprob": -1.25, "rank": 3}]},
        "weight_versions": [{"version": "r:1", "start": 0, "end": 1},
                            {"version": "r:2", "start": 1, "end": 2}],
        "routed_experts": null}],
      "prompt_logprobs": [null, {"2": {"logprob": -1, "rank": 1, "decoded_token": "x"}},
                          {"3": {"logprob": -2}}, {"7": {"logprob": -3}, "6": {"logprob": -0.1}},
                          {"8": {"logprob": -4}}]})");
  EXPECT_EQ(answer.tokens, (std::vector<TokenId>{4, 9}));
  EXPECT_EQ(answer.logprobs, (std::vector<float>{-0.5F, -1.25F}));
  EXPECT_EQ(answer.end, AnswerEnd::kStop);
  ASSERT_EQ(answer.spans.size(), 2U);
  EXPECT_EQ(answer.spans[1].label, "r:2");
  EXPECT_EQ(answer.spans[1].start, 1);
  EXPECT_EQ(answer.scores, (std::vector<float>{-3, -4}));
}

TEST(VllmDialectTest, WhatMakesNoSenseIsOneLine) {
  const Dialect& vllm = VllmDialect();
  const std::string end = R"("finish_reason":"length","token_ids":[4])";
  EXPECT_EQ(ErrorOf(vllm, "{}"), "has no choice that has ended");
  EXPECT_NE(ErrorOf(vllm, "<html>").find("must"), std::string::npos);
  EXPECT_NE(ErrorOf(vllm, R"({"choices":[{)" + end + "}]}").find("logprobs: are of 0 tokens"),
            std::string::npos);
  EXPECT_NE(ErrorOf(vllm, R"({"choices":[{)" + end +
                              R"(,"logprobs":{"content":[)"
                              R"({"token_id":5,"logprob":-1}]}}]})")
                .find("not of the 1 in token_ids"),
            std::string::npos);
  EXPECT_NE(ErrorOf(vllm, R"({"choices":[{"finish_reason":"ok"}]})").find("must be stop, length"),
            std::string::npos);
  EXPECT_NE(ErrorOf(vllm, R"({"choices":[{"token_ids":[-1]}]})").find(">= 0"), std::string::npos);
  EXPECT_NE(ErrorOf(vllm, R"({"choices":[{)" + end +
                              R"(,"logprobs":{"content":[)"
                              R"({"token_id":4,"logprob":0.5}]}}]})")
                .find("log-probability"),
            std::string::npos);
}

TEST(VllmDialectTest, JoiningReadsVersionModelAndTokenizer) {
  const Dialect& vllm = VllmDialect();
  ServerFacts facts;
  const std::vector<std::string> bodies = {
      R"({"version":"0.32.0"})",
      R"({"object":"list","data":[{"id":"m","max_model_len":2048},{"id":"other"}]})",
      R"({"count":2,"tokens":[5,6],"token_strs":null})",
      R"({"weight_version":"default"})",
      R"({"status":"aborted","aborted":1})",
      R"x({"results":["Qwen3ForCausalLM()(\n  (model): Qwen3Model()(\n)x"
      R"x(    (embed_tokens): VocabParallelEmbedding(num_embeddings=18, embedding_dim=128, )x"
      R"x(org_vocab_size=18, tp_size=1)\n    (layers): ModuleList()(\n)x"
      R"x(      (0-2): 3 x Qwen3DecoderLayer()(\n        (mlp): Qwen2MLP()(\n        )\n      )\n)x"
      R"x(      (3): OtherLayer()(\n        (9): Linear()\n      )\n    )\n)x"
      R"x(    (norm): RMSNorm(hidden_size=128)\n  )\n  (7): Head()\n)"]})x",
      R"({"results":["none"]})",
      R"({"world_size":8})"};
  ASSERT_EQ(vllm.Join().size(), bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) {
    const Status status = vllm.ReadJoin(i, {200, bodies[i]}, facts);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(facts.version, "0.32.0");
  EXPECT_EQ(facts.model, "m");
  EXPECT_EQ(facts.max_tokens, 2048);
  EXPECT_EQ(facts.probe, (std::vector<TokenId>{5, 6}));
  EXPECT_TRUE(facts.tells_versions);
  EXPECT_TRUE(facts.fetches);
  EXPECT_EQ(facts.num_workers, 8);
  EXPECT_EQ(facts.shape.vocabulary, 18);
  EXPECT_EQ(facts.shape.hidden_size, 128);
  EXPECT_EQ(facts.shape.num_layers, 4);
  // A seed ends vLLM on the CPU when a prompt is read in several passes.
  EXPECT_FALSE(facts.takes_seeds);
  ServerFacts own;
  EXPECT_TRUE(vllm.ReadJoin(0, {200, R"({"version":"1","server":"pace"})"}, own).ok());
  EXPECT_TRUE(own.takes_seeds);
  const Status closed = vllm.ReadJoin(4, {403, R"({"error":{"message":"disabled"}})"}, facts);
  EXPECT_EQ(closed.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(closed.message().find("--enable-scale-out"), std::string::npos);
  EXPECT_TRUE(vllm.ReadJoin(5, {500, "no such method"}, own).ok());
  EXPECT_EQ(own.shape.num_layers, 0);
  EXPECT_TRUE(vllm.ReadJoin(6, {500, "no such method"}, own).ok());
  EXPECT_FALSE(own.fetches);
  EXPECT_TRUE(vllm.ReadJoin(7, {404, ""}, own).ok());
  EXPECT_EQ(own.num_workers, 1);
  EXPECT_FALSE(vllm.ReadJoin(7, {200, R"({"world_size":0})"}, own).ok());
  EXPECT_TRUE(vllm.ReadJoin(2, {404, ""}, facts).ok());
  EXPECT_NE(vllm.ReadJoin(3, {404, ""}, facts).message().find("VLLM_SERVER_DEV_MODE=1"),
            std::string::npos);
  EXPECT_EQ(
      vllm.ReadJoin(0, {503, R"({"error":{"message":"starting","code":503}})"}, facts).message(),
      "/version answered 503: starting");
}

WeightSet Weights() {
  return RandomWeights(TinyModel(Architecture::kQwen3), 5);
}

// The lists of an update, which name every tensor of a chunk with its type and its shape.
std::string ListsOf(const WeightSet& weights, const WeightChunk& chunk, const char* types_key) {
  std::string names;
  std::string types;
  std::string shapes;
  size_t index = 0;
  for (const auto& [name, view] : weights.views()) {
    const size_t at = index++;
    if (at < chunk.first || at >= chunk.first + chunk.count) continue;
    const char* const comma = at == chunk.first ? "" : ",";
    std::string shape;
    for (const int64_t size : view.shape) shape += Concat(shape.empty() ? "" : ",", size);
    names += Concat(comma, '"', name, '"');
    types += Concat(comma, "\"float32\"");
    shapes += Concat(comma, '[', shape, ']');
  }
  return Concat("\"names\":[", names, "],\"", types_key, "\":[", types, "],\"shapes\":[", shapes,
                "]");
}

TEST(VllmDialectTest, AnUpdateOverAChannelHasThreeCalls) {
  const Dialect& vllm = VllmDialect();
  const ChannelInvitation channel{
      .num_workers = 4, .id = std::string(128, 'i'), .packed = true, .buffer_bytes = 20'000};
  const HttpCall open = vllm.OpenChannel(channel);
  EXPECT_EQ(open.target, "/init_weight_transfer_engine");
  EXPECT_EQ(open.body, Concat(R"({"init_info":{"nccl_unique_id_b64":")", EncodeBase64(channel.id),
                              R"(","rank_offset":1,"world_size":5,"packed":true,)",
                              R"("packed_buffer_size_bytes":20000,"packed_num_buffers":2}})"));
  const WeightSet weights = Weights();
  const std::vector<UpdateCall> update = vllm.Update(weights, "run:7", InFlightRule::kEnd, channel);
  ASSERT_EQ(update.size(), 3U);
  EXPECT_EQ(update[0].http.target, "/start_weight_update");
  EXPECT_EQ(update[1].http.target, "/update_weights");
  EXPECT_EQ(update[1].http.body,
            Concat(R"({"update_info":{)",
                   ListsOf(weights, {.count = weights.views().size()}, "dtype_names"), "}}"));
  EXPECT_EQ(update[1].sends, ChunksOf(weights, 20'000));
  EXPECT_TRUE(update[0].sends.empty() && update[2].sends.empty());
  EXPECT_EQ(update[2].http.target, "/finish_weight_update");
  EXPECT_EQ(update[2].http.body, R"({"weight_version":"run:7"})");
}

TEST(SglangDialectTest, AnUpdateOverAChannelIsASessionWithACallForEachBucket) {
  const Dialect& sglang = SglangDialect();
  const ChannelInvitation channel{.num_workers = 4,
                                  .group = "pace-1",
                                  .address = "10.0.0.1",
                                  .port = 29500,
                                  .buffer_bytes = 20'000};
  const HttpCall open = sglang.OpenChannel(channel);
  EXPECT_EQ(open.target, "/init_weights_update_group");
  EXPECT_EQ(open.body, R"({"master_address":"10.0.0.1","master_port":29500,"rank_offset":1,)"
                       R"("world_size":5,"group_name":"pace-1","backend":"nccl"})");
  const WeightSet weights = Weights();
  const std::vector<WeightChunk> buckets = BucketsOf(weights, 20'000);
  ASSERT_EQ(buckets.size(), 3U);
  for (const InFlightRule rule : {InFlightRule::kEnd, InFlightRule::kKeep}) {
    const std::vector<UpdateCall> update = sglang.Update(weights, "run:7", rule, channel);
    ASSERT_EQ(update.size(), 6U);
    EXPECT_EQ(update[0].http.target, "/end_weight_update");
    EXPECT_TRUE(update[0].may_be_refused);
    EXPECT_EQ(update[1].http.target, "/begin_weight_update");
    EXPECT_EQ(update[5].http.target, "/end_weight_update");
    for (size_t i = 0; i < buckets.size(); ++i) {
      const UpdateCall& call = update[2 + i];
      EXPECT_EQ(call.http.target, "/update_weights_from_distributed");
      EXPECT_EQ(call.sends, (std::vector<WeightChunk>{buckets[i]}));
      const bool last = i + 1 == buckets.size();
      EXPECT_EQ(call.http.body,
                Concat("{", ListsOf(weights, buckets[i], "dtypes"),
                       R"(,"group_name":"pace-1","load_format":"flattened_bucket","flush_cache":)",
                       last && rule == InFlightRule::kEnd ? "true" : "false",
                       last ? R"(,"weight_version":"run:7"})" : "}"));
    }
    for (const size_t i : {0U, 1U, 5U}) {
      EXPECT_EQ(update[i].http.body, "{}");
      EXPECT_TRUE(update[i].sends.empty());
      EXPECT_EQ(update[i].may_be_refused, i == 0);
    }
  }
}

TEST(SglangDialectTest, JoiningReadsHowManyWorkersTakeWeights) {
  const Dialect& sglang = SglangDialect();
  ServerFacts facts;
  const auto read = [&](const std::string& sizes) {
    return sglang.ReadJoin(0, {200, R"({"version":"0.5.23",)" + sizes + "}"}, facts);
  };
  EXPECT_TRUE(read(R"("tp_size":4,"dp_size":1,"pp_size":1)").ok());
  EXPECT_EQ(facts.num_workers, 4);
  EXPECT_EQ(facts.no_channel, "");
  EXPECT_TRUE(read(R"("pp_size":2,"internal_states":[{"tp_size":9}])").ok());
  EXPECT_EQ(facts.num_workers, 4);
  EXPECT_NE(facts.no_channel.find("pp_size = 2: must be 1"), std::string::npos);
  EXPECT_FALSE(read(R"("tp_size":0)").ok());
}

TEST(SglangDialectTest, WritesAndReads) {
  const Dialect& sglang = SglangDialect();
  GenerateCall call = ACall();
  call.first_scored = 3;
  const std::string body = sglang.Generate(call).body;
  EXPECT_NE(body.find(R"("input_ids":[1,2,3,7,8])"), std::string::npos);
  EXPECT_NE(body.find(R"("top_k":-1)"), std::string::npos);
  EXPECT_NE(body.find(R"("logprob_start_len":2)"), std::string::npos);
  const GenerateAnswer answer = Read(sglang, call, R"({"text": "", "output_ids": [4, 5],
      "meta_info": {"id": "r", "finish_reason": {"type": "length", "length": 2},
        "output_token_logprobs": [[-0.5, 4, null], [-0.25, 5, null]],
        "input_token_logprobs": [[null, 3, null], [-3, 7, null], [-4, 8, null]],
        "weight_version": "r:2",
        "weight_versions": [{"version": "r:2", "start": 0, "end": 2}]}})");
  EXPECT_EQ(answer.tokens, (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(answer.end, AnswerEnd::kLength);
  EXPECT_EQ(answer.scores, (std::vector<float>{-3, -4}));
  ASSERT_EQ(answer.spans.size(), 1U);
  EXPECT_EQ(sglang.Abort(std::vector<std::string>{"a", "b"}).size(), 2U);
  EXPECT_EQ(sglang.Pause(InFlightRule::kRecompute).body, R"({"mode":"retract"})");
  EXPECT_NE(sglang.Load("/w/v1", "r:1", InFlightRule::kKeep, false)
                .front()
                .body.find(R"("flush_cache":false)"),
            std::string::npos);
  EXPECT_NE(ErrorOf(sglang, R"({"output_ids":[4],"meta_info":{}})").find("finish_reason"),
            std::string::npos);
}

TEST(VllmDialectTest, EveryProcessOfAServerHasToHaveReadTheWeights) {
  const Dialect& vllm = VllmDialect();
  EXPECT_EQ(vllm.Fetch("/w/v1").body, R"({"method":"pace_fetch","kwargs":{"folder":"/w/v1"}})");
  EXPECT_TRUE(vllm.ReadFetch(R"({"results":["ready","ready"]})").value());
  EXPECT_FALSE(vllm.ReadFetch(R"({"results":["ready","loading"]})").value());
  EXPECT_FALSE(vllm.ReadFetch(R"({"results":["loading","ready"]})").value());
  for (const char* body : {R"({"results":[]})", R"({"results":["what"]})", "null", ""}) {
    EXPECT_FALSE(vllm.ReadFetch(body).ok()) << body;
  }
  EXPECT_EQ(vllm.Load("/w/v1", "r:1", InFlightRule::kEnd, true).front().body,
            R"({"method":"pace_install","kwargs":{"folder":"/w/v1"}})");
  EXPECT_EQ(vllm.Load("/w/v1", "r:1", InFlightRule::kEnd, false).front().body,
            R"({"method":"reload_weights","kwargs":{"weights_path":"/w/v1"}})");
}

TEST(DialectTest, TimesToTheFirstTokenAreSumsOverEnginesOfAServer) {
  const std::string text =
      "# HELP vllm:time_to_first_token_seconds Histogram\n"
      "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.001\"} 7.0\n"
      "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"a b\"} 4.0\n"
      "vllm:time_to_first_token_seconds_sum{engine=\"0\",model_name=\"a b\"} 1.5\n"
      "vllm:time_to_first_token_seconds_count{engine=\"1\"} 2.0\n"
      "vllm:time_to_first_token_seconds_sum{engine=\"1\"} 5e-1\n"
      "vllm:time_to_first_token_seconds_summary 99\n"
      "vllm:time_to_first_token_seconds_created{engine=\"0\"} 1.7e9\n";
  const FirstTokens first = VllmDialect().ReadMetrics(text);
  EXPECT_EQ(first.count, 6);
  EXPECT_EQ(first.time, Seconds(2));
  EXPECT_EQ(SglangDialect().ReadMetrics(text).count, 0);
  for (const std::string value : {"NaN", "+Inf", "-1", "1e999", "", "1x", "2 3\t"}) {
    const std::string line = Concat("vllm:time_to_first_token_seconds_count ", value);
    EXPECT_EQ(VllmDialect().ReadMetrics(line).count, 0) << value;
  }
}

TEST(DialectTest, ErrorsOfServersFitOnOneLine) {
  const Dialect& vllm = VllmDialect();
  EXPECT_EQ(vllm.ReadError(R"({"error":{"message":"too long","type":"BadRequestError"}})"),
            "too long");
  EXPECT_EQ(vllm.ReadError(R"({"detail":"Missing 'method'"})"), "Missing 'method'");
  EXPECT_EQ(vllm.ReadError("Internal Server Error\nTraceback"), "Internal Server Error");
  EXPECT_EQ(vllm.ReadError(""), "no reason given");
  EXPECT_LE(vllm.ReadError(std::string(5000, 'x')).size(), 400U);
}

TEST(AnswerCheckTest, ARequestThatEndedEarlyLeavesItsResponseWaitingForItsScore) {
  GenerateCall call = ACall();
  call.first_scored = 3;
  PartialResponse response;
  response.tokens = {{.id = 7, .logprob = -1}, {.id = 8, .logprob = -2}};
  response.awaits_score = true;
  for (const char* scores : {"null", "[null]", R"([null,{"2":{"logprob":-1}},{"3":{"logprob":-1}},
                                                   {"7":{"logprob":-1}}])"}) {
    const GenerateAnswer early =
        Read(VllmDialect(), call,
             Concat(R"({"choices":[{"finish_reason":"abort","token_ids":[],"weight_versions":[],)",
                    R"("logprobs":{"content":[]}}],"prompt_logprobs":)", scores, "}"));
    EXPECT_TRUE(CheckAnswer(call, early, 50).ok()) << scores;
    TakeScore(early.scores, 64, response);
    EXPECT_TRUE(response.awaits_score) << scores;
    EXPECT_FALSE(response.prefix_score.has_value()) << scores;
  }
  TakeScore(std::vector<float>{-1.5F, -2}, 64, response);
  EXPECT_FALSE(response.awaits_score);
  EXPECT_EQ(response.prefix_score, 0.25);
}

}  // namespace
}  // namespace pace
