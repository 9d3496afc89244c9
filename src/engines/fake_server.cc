#include "engines/fake_server.h"

#include <utility>

#include "core/check.h"
#include "core/json_writer.h"
#include "engines/answer_scan.h"

namespace pace {
namespace {

uint64_t Mix(uint64_t value) {
  value ^= value >> 31;
  value *= 0x9E3779B97F4A7C15;
  return value ^ (value >> 29);
}

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 17;
  for (const char c : text) hash = Mix(hash + static_cast<unsigned char>(c));
  return hash;
}

std::string Field(std::string_view body, std::string_view key) {
  const Result<std::string> text = answer::TextOf(body, key);
  PACE_CHECK(text.ok(), text.status().message());
  return *text;
}

}  // namespace

float FakeServer::LogprobOf(const std::string& label, int64_t count, TokenId token) {
  const uint64_t hash =
      Mix(HashOf(label) + Mix(static_cast<uint64_t>(count) * 1000 + static_cast<uint64_t>(token)));
  return -static_cast<float>(hash % 4096 + 1) / 1024;
}

void FakeServer::Reply(int64_t call, std::string body, int64_t status) {
  answers_.push_back({call, {status, std::move(body)}});
}

std::vector<FakeServer::Answer> FakeServer::TakeAnswers() {
  return std::exchange(answers_, {});
}

void FakeServer::Receive(int64_t call, const HttpCall& http) {
  if (kind_ == Kind::kVllm) {
    ReceiveAsVllm(call, http);
  } else {
    ReceiveAsSglang(call, http);
  }
}

// Requests that the body names in quotes.
void FakeServer::Abort(const HttpCall& http) {
  for (const auto& [call, request] : std::map(requests_)) {
    if (http.body.find(Concat("\"", request.id, "\"")) == std::string::npos) continue;
    Finish(call, request, "abort");
  }
}

void FakeServer::ReceiveAsVllm(int64_t call, const HttpCall& http) {
  const std::string& target = http.target;
  if (target == "/inference/v1/generate") return ReceiveGenerate(call, http);
  if (control_status.has_value()) return Reply(call, R"({"error":"broken"})", *control_status);
  if (target == "/version") return Reply(call, R"({"version":"0.32.0","server":"pace"})");
  if (target == "/v1/models") {
    return Reply(call, R"({"data":[{"id":"fake","max_model_len":4096}]})");
  }
  if (target == "/tokenize") return Reply(call, R"({"tokens":[1,2,3],"count":3})");
  if (target == "/weight_info") return Reply(call, Concat(R"({"weight_version":")", label, "\"}"));
  if (target == "/health") return Reply(call, "");
  if (target == "/metrics") {
    return Reply(call,
                 "vllm:time_to_first_token_seconds_sum 1.5\n"
                 "vllm:time_to_first_token_seconds_count 3\n");
  }
  if (target == "/inference/v1/abort_requests") return Reply(call, R"({"status":"aborted"})");
  if (target == "/collective_rpc" && http.body.find("inspection") != std::string::npos) {
    return Reply(call, Concat(R"({"results":["(embed_tokens): E(num_embeddings=)", kVocabulary,
                              R"(, embedding_dim=8)\n(layers): M(\n  (0-1): 2 x L(\n"]})"));
  }
  if (target == "/collective_rpc" && http.body.find("pace_fetch") != std::string::npos) {
    return Fetch(call, http);
  }
  if (target == "/abort_requests") {
    Abort(http);
    return Reply(call, R"({"status":"aborted"})");
  }
  if (target.starts_with("/pause")) {
    paused_ = true;
    if (target.find("mode=abort") != std::string::npos) AbortAll();
    return Reply(call, R"({"status":"paused"})");
  }
  if (target == "/collective_rpc") {
    PACE_CHECK(paused_, "weights are loaded while the server runs");
    ++num_loads;
    num_fetched += http.body.find("pace_install") != std::string::npos ? 1 : 0;
    return Reply(call, R"({"results":[null]})");
  }
  if (target == "/update_weight_version") {
    label = Field(http.body, "new_version");
    return Reply(call, R"({"success":true})");
  }
  if (TakesChannelCall(call, http)) return;
  if (target == "/resume") {
    PACE_CHECK(!updating_, "resumed within an update");
    paused_ = false;
    return Reply(call, R"({"status":"resumed"})");
  }
  PACE_CHECK(false, "a call to ", target);
}

bool FakeServer::TakesChannelCall(int64_t call, const HttpCall& http) {
  const std::string& target = http.target;
  if (target == "/get_world_size") {
    Reply(call, Concat(R"({"world_size":)", num_workers, "}"));
  } else if (target == "/init_weight_transfer_engine") {
    PACE_CHECK(paused_ && !channel_open_, "a channel is opened once, in a pause");
    channel_call_ = call;
  } else if (target == "/start_weight_update") {
    PACE_CHECK(paused_ && channel_open_ && !updating_, "an update outside its place");
    updating_ = true;
    received_ = false;
    Reply(call, R"({"message":"Weight update started"})");
  } else if (target == "/update_weights") {
    PACE_CHECK(updating_ && http.body.find("update_info") != std::string::npos, http.body);
    channel_call_ = call;
  } else if (target == "/finish_weight_update") {
    PACE_CHECK(updating_ && received_, "an update ends before its weights have come");
    updating_ = false;
    ++num_loads;
    label = Field(http.body, "weight_version");
    Reply(call, R"({"message":"Weight update finished"})");
  } else {
    return false;
  }
  return true;
}

void FakeServer::ReceiveAsSglang(int64_t call, const HttpCall& http) {
  const std::string& target = http.target;
  if (target == "/generate") return ReceiveGenerate(call, http);
  if (control_status.has_value()) return Reply(call, R"({"error":"broken"})", *control_status);
  if (target == "/server_info") {
    return Reply(call, Concat(R"({"version":"0.5.23","context_length":4096,"tp_size":)",
                              num_workers, R"(,"dp_size":)", num_replicas, R"(,"pp_size":1})"));
  }
  if (target == "/model_info") {
    return Reply(call, Concat(R"({"served_model_name":"fake","weight_version":")", label, "\"}"));
  }
  if (target == "/tokenize") return Reply(call, R"({"tokens":[1,2,3],"count":3})");
  if (target == "/health") return Reply(call, "");
  if (target == "/metrics") {
    return Reply(call,
                 "sglang:time_to_first_token_seconds_sum 1.5\n"
                 "sglang:time_to_first_token_seconds_count 3\n");
  }
  if (target == "/abort_request") {
    Abort(http);
    return Reply(call, "");
  }
  if (target == "/pause_generation") {
    paused_ = true;
    if (Field(http.body, "mode") == "abort") AbortAll();
    return Reply(call, R"({"status":"ok"})");
  }
  if (target == "/update_weights_from_disk") {
    PACE_CHECK(paused_, "weights are loaded while the server runs");
    ++num_loads;
    label = Field(http.body, "weight_version");
    return Reply(call, R"({"success":true})");
  }
  if (TakesSessionCall(call, http)) return;
  if (target == "/continue_generation") {
    PACE_CHECK(!session_open, "resumed within an update");
    paused_ = false;
    return Reply(call, R"({"status":"ok"})");
  }
  PACE_CHECK(false, "a call to ", target);
}

bool FakeServer::TakesSessionCall(int64_t call, const HttpCall& http) {
  const std::string& target = http.target;
  const auto refuse = [&](const char* why) {
    Reply(call, Concat(R"({"success":false,"message":")", why, "\"}"), 400);
    return true;
  };
  if (target == "/init_weights_update_group") {
    PACE_CHECK(paused_ && Field(http.body, "backend") == "nccl", http.body);
    PACE_CHECK(http.body.find(Concat(R"("world_size":)", num_workers + 1)) != std::string::npos,
               http.body);
    if (Field(http.body, "group_name") == group_) return refuse("already been created");
    group_ = Field(http.body, "group_name");
  } else if (target == "/begin_weight_update") {
    PACE_CHECK(paused_, "an update while the server runs");
    if (session_open) return refuse("a weight-update session is already open");
    session_open = true;
    received.clear();
  } else if (target == "/end_weight_update") {
    if (!session_open) return refuse("no weight-update session is open");
    session_open = false;
  } else if (target == "/update_weights_from_distributed") {
    if (!session_open) return refuse("must run between begin_weight_update() and ...");
    if (Field(http.body, "group_name") != group_) return refuse("no such group");
    channel_call_ = call;
    bucket_ = http.body;
    return true;
  } else {
    return false;
  }
  Reply(call, R"({"success":true,"message":"Success"})");
  return true;
}

void FakeServer::MeetOnChannel() {
  const int64_t call = *std::exchange(channel_call_, std::nullopt);
  if (kind_ == Kind::kSglang) {
    ++num_buckets;
    JsonScanner scan(bucket_);
    bool is_last = false;
    answer::ForKeys(scan, [&](const std::string& key) {
      if (key == "names") {
        return answer::ForItems(scan, [&] { scan.Text(received.emplace_back()); });
      }
      if (key != "weight_version") return false;
      is_last = true;
      return scan.Text(label);
    });
    num_loads += is_last ? 1 : 0;
    return Reply(call, R"({"success":true,"message":"Succeeded to update parameter online."})");
  }
  received_ = updating_;
  channel_open_ = true;
  Reply(call, R"({"message":"done"})");
}

void FakeServer::Fetch(int64_t call, const HttpCall& http) {
  if (!fetches.has_value()) return Reply(call, R"({"error":"no such method"})", 500);
  if (http.body.find(R"("folder":"")") != std::string::npos) {
    return Reply(call, R"({"results":["none"]})");
  }
  PACE_CHECK(!paused_, "weights are fetched in the pause");
  const bool ready = num_asked_++ >= *fetches;
  if (ready) num_asked_ = 0;
  Reply(call, Concat(R"({"results":[")", ready ? "ready" : "loading", R"("]})"));
}

void FakeServer::ReceiveGenerate(int64_t call, const HttpCall& http) {
  Request request;
  JsonScanner scan(http.body);
  answer::ForKeys(scan, [&](const std::string& key) {
    if (key == "request_id" || key == "rid") return scan.Text(request.id);
    if (key == "token_ids" || key == "input_ids") return answer::Tokens(scan, request.tokens);
    if (key == "logprob_start_len") {
      request.wants_scores = true;
      return scan.Integer(0, 1 << 20, "", request.first_score);
    }
    if (key != "sampling_params") return false;
    return answer::ForKeys(scan, [&](const std::string& name) {
      if (name == "max_tokens" || name == "max_new_tokens") {
        return scan.Integer(1, 1 << 20, "", request.max_tokens);
      }
      if (name == "stop_token_ids") return answer::Tokens(scan, request.stop_tokens);
      if (name == "seed" || name == "sampling_seed") {
        int64_t seed = 0;
        scan.Integer(0, INT64_MAX, "", seed);
        request.seed = static_cast<uint64_t>(seed);
        return true;
      }
      if (name == "prompt_logprobs") {
        request.wants_scores = true;
        return false;
      }
      return false;
    });
  });
  scan.End();
  PACE_CHECK(scan.ok(), scan.status().message());
  requests_.emplace(call, std::move(request));
}

void FakeServer::AbortAll() {
  for (const auto& [call, request] : std::map(requests_)) Finish(call, request, "abort");
}

void FakeServer::Step() {
  if (paused_) return;
  std::vector<std::pair<int64_t, std::string>> done;
  for (auto& [call, request] : requests_) {
    if (!request.scored) {
      for (size_t i = 1; i < request.tokens.size(); ++i) {
        request.scores.push_back(LogprobOf(label, static_cast<int64_t>(i), request.tokens[i]));
      }
      request.scored = true;
    }
    const size_t count = request.tokens.size() + request.sampled.size();
    const uint64_t hash = Mix(request.seed + Mix(count + HashOf(label)));
    const auto token = static_cast<TokenId>(hash % kVocabulary);
    request.sampled.push_back(token);
    request.labels.push_back(label);
    request.logprobs.push_back(LogprobOf(label, static_cast<int64_t>(count), token));
    const bool stops = std::find(request.stop_tokens.begin(), request.stop_tokens.end(), token) !=
                       request.stop_tokens.end();
    if (stops) {
      done.emplace_back(call, "stop");
    } else if (std::ssize(request.sampled) == request.max_tokens) {
      done.emplace_back(call, "length");
    }
  }
  for (const auto& [call, reason] : done) {
    const Request request = requests_.at(call);
    Finish(call, request, reason);
  }
}

void FakeServer::PutSpans(JsonWriter& json, const Request& request) const {
  if (!tells_versions) return;
  json.Key("weight_versions");
  json.BeginArray();
  for (size_t start = 0; start < request.labels.size();) {
    size_t end = start;
    while (end < request.labels.size() && request.labels[end] == request.labels[start]) ++end;
    json.BeginObject();
    json.Put("version", request.labels[start]);
    json.Put("start", start);
    json.Put("end", end);
    json.EndObject();
    start = end;
  }
  json.EndArray();
}

std::string FakeServer::VllmBody(const Request& request, std::string_view reason) const {
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Put("request_id", request.id);
  json.Key("choices");
  json.BeginArray();
  json.BeginObject();
  json.Put("index", 0);
  json.Put("finish_reason", reason);
  json.Key("token_ids");
  json.BeginArray();
  for (const TokenId id : request.sampled) json.Value(id);
  json.EndArray();
  json.Key("logprobs");
  json.BeginObject();
  json.Key("content");
  json.BeginArray();
  for (size_t i = 0; i < request.sampled.size(); ++i) {
    json.BeginObject();
    json.Put("token_id", request.sampled[i]);
    json.Put("logprob", static_cast<double>(request.logprobs[i]));
    json.Put("rank", 1);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  PutSpans(json, request);
  json.EndObject();
  json.EndArray();
  if (request.wants_scores) {
    json.Key("prompt_logprobs");
    json.BeginArray();
    json.Value(nullptr);
    for (size_t i = 1; i <= request.scores.size(); ++i) {
      json.BeginObject();
      json.TextKey(Concat(request.tokens[i]));
      json.BeginObject();
      json.Put("logprob", static_cast<double>(request.scores[i - 1]));
      json.EndObject();
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
  return body;
}

std::string FakeServer::SglangBody(const Request& request, std::string_view reason) const {
  std::string body;
  JsonWriter json(body);
  const auto put_pair = [&json](std::optional<float> logprob, TokenId id) {
    json.BeginArray();
    if (logprob.has_value()) {
      json.Value(static_cast<double>(*logprob));
    } else {
      json.Value(nullptr);
    }
    json.Value(id);
    json.Value(nullptr);
    json.EndArray();
  };
  json.BeginObject();
  json.Key("output_ids");
  json.BeginArray();
  for (const TokenId id : request.sampled) json.Value(id);
  json.EndArray();
  json.Key("meta_info");
  json.BeginObject();
  json.Put("id", request.id);
  json.Key("finish_reason");
  json.BeginObject();
  json.Put("type", reason);
  json.EndObject();
  json.Key("output_token_logprobs");
  json.BeginArray();
  for (size_t i = 0; i < request.sampled.size(); ++i) {
    put_pair(request.logprobs[i], request.sampled[i]);
  }
  json.EndArray();
  if (request.wants_scores && request.scored) {
    json.Key("input_token_logprobs");
    json.BeginArray();
    const auto first = static_cast<size_t>(request.first_score);
    for (size_t i = first; i < request.tokens.size(); ++i) {
      put_pair(i == first ? std::nullopt : std::optional(request.scores[i - 1]), request.tokens[i]);
    }
    json.EndArray();
  }
  PutSpans(json, request);
  json.EndObject();
  json.EndObject();
  return body;
}

void FakeServer::Finish(int64_t call, const Request& request, std::string_view reason) {
  std::string body = kind_ == Kind::kVllm ? VllmBody(request, reason) : SglangBody(request, reason);
  num_aborted += reason == "abort" ? 1 : 0;
  requests_.erase(call);
  Answer& answer = answers_.emplace_back(Answer{call, {200, std::move(body)}});
  if (lie) lie(answer.answer);
}

}  // namespace pace
