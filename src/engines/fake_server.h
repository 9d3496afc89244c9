// FakeServer: what vLLM or SGLang does with the calls of its dialect, without a network, for tests.
//
// Its policy is a formula: which token comes next and how likely it was follow from the weights'
// label and the tokens before, so a test can compute what must come out. It can lie. A call that
// breaks the protocol in a way that a server would not answer aborts the test.
//
// Thread-safety: none.
#ifndef PACE_ENGINES_FAKE_SERVER_H_
#define PACE_ENGINES_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_writer.h"
#include "core/token_id.h"
#include "engines/dialect.h"

namespace pace {

class FakeServer {
 public:
  enum class Kind { kVllm, kSglang };
  explicit FakeServer(Kind kind = Kind::kVllm) : kind_(kind) {}
  Kind kind() const { return kind_; }
  const Dialect& dialect() const { return kind_ == Kind::kVllm ? VllmDialect() : SglangDialect(); }

  static constexpr TokenId kVocabulary = 50;

  // log-probability of `token` after `count` tokens under these weights, in steps of 1/1024.
  static float LogprobOf(const std::string& label, int64_t count, TokenId token);

  // A call comes in; its answer may come at once or later, from TakeAnswers.
  void Receive(int64_t call, const HttpCall& http);
  // Each request that runs samples a token.
  void Step();

  struct Answer {
    int64_t call = 0;
    ServerAnswer answer = {};
  };
  std::vector<Answer> TakeAnswers();

  // Whether its workers wait for the other end of the channel; the other end came.
  bool waits_for_channel() const { return channel_call_.has_value(); }
  void MeetOnChannel();

  // Changes an answer to a generate request before it leaves.
  std::function<void(ServerAnswer&)> lie = {};
  // Answers to control calls fail with this status.
  std::optional<int64_t> control_status = {};
  std::string label = "default";
  bool tells_versions = true;
  // With the plugin: how often it says that it is still loading.
  std::optional<int64_t> fetches = {};
  int64_t num_fetched = 0;  // weights that were installed after it was ready
  int64_t num_aborted = 0;
  int64_t num_loads = 0;
  int64_t num_workers = 1;
  // SGLang's.
  int64_t num_replicas = 1;
  bool session_open = false;               // of an update
  std::vector<std::string> received = {};  // names of tensors, in the session under way or the last
  int64_t num_buckets = 0;                 // since it started
  size_t num_running() const { return requests_.size(); }

 private:
  struct Request {
    std::string id;
    std::vector<TokenId> tokens;  // the prompt
    std::vector<TokenId> sampled;
    std::vector<std::string> labels;  // of `sampled`
    std::vector<float> logprobs;
    std::vector<float> scores;  // of the prompt, from its second token on
    int64_t max_tokens = 0;
    std::vector<TokenId> stop_tokens;
    uint64_t seed = 0;
    bool wants_scores = false;
    int64_t first_score = 0;  // SGLang's
    bool scored = false;
  };

  void ReceiveAsVllm(int64_t call, const HttpCall& http);
  void ReceiveAsSglang(int64_t call, const HttpCall& http);
  void ReceiveGenerate(int64_t call, const HttpCall& http);
  void Abort(const HttpCall& http);
  std::string VllmBody(const Request& request, std::string_view reason) const;
  std::string SglangBody(const Request& request, std::string_view reason) const;
  void PutSpans(JsonWriter& json, const Request& request) const;
  void Finish(int64_t call, const Request& request, std::string_view reason);
  void AbortAll();
  void Reply(int64_t call, std::string body, int64_t status = 200);

  void Fetch(int64_t call, const HttpCall& http);

  bool TakesChannelCall(int64_t call, const HttpCall& http);
  bool TakesSessionCall(int64_t call, const HttpCall& http);

  const Kind kind_;
  bool paused_ = false;
  bool channel_open_ = false;
  bool updating_ = false;
  bool received_ = false;                // in the update under way
  std::optional<int64_t> channel_call_;  // answered by MeetOnChannel
  std::string bucket_;                   // the body of channel_call_, SGLang's
  std::string group_;                    // that SGLang's workers are in
  int64_t num_asked_ = 0;
  std::map<int64_t, Request> requests_;  // by call
  std::vector<Answer> answers_;
};

}  // namespace pace

#endif  // PACE_ENGINES_FAKE_SERVER_H_
