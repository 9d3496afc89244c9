#include "core/json_writer.h"
#include "core/printable.h"
#include "engines/answer_scan.h"
#include "engines/dialect.h"

namespace pace {
namespace {

enum JoinCall : size_t { kServerInfo, kModelInfo, kTokenize, kNumJoinCalls };

constexpr int64_t kMostRanks = 1 << 16;

template <typename Put>
HttpCall JsonCall(std::string target, Put put) {
  HttpCall http{.target = std::move(target)};
  JsonWriter json(http.body);
  json.BeginObject();
  put(json);
  json.EndObject();
  return http;
}

void PutSampling(JsonWriter& json, const GenerateCall& call) {
  json.Key("sampling_params");
  json.BeginObject();
  json.Put("max_new_tokens", call.max_tokens);
  json.Put("temperature", call.sampling.temperature);
  json.Put("top_p", call.sampling.top_p);
  json.Put("top_k", call.sampling.top_k > 0 ? call.sampling.top_k : -1);
  json.Put("min_p", call.sampling.min_p);
  if (call.seed.has_value()) {
    json.Put("sampling_seed", static_cast<int64_t>(*call.seed >> 33));  // 31 bits
  }
  // Our stop tokens are the only ones: the model's own would end responses otherwise.
  json.Put("ignore_eos", true);
  json.Key("stop_token_ids");
  json.BeginArray();
  for (const TokenId id : call.stop_tokens) json.Value(id);
  json.EndArray();
  if (!call.stop_strings.empty()) {
    json.Key("stop");
    json.BeginArray();
    for (const std::string& text : call.stop_strings) json.Value(text);
    json.EndArray();
  }
  json.EndObject();
}

// A group for updates has the tensor-parallel ranks of one replica.
bool ReadReplicas(JsonScanner& scan, const std::string& key, ServerFacts& facts) {
  int64_t count = 1;
  if (scan.Integer(1, kMostRanks, "", count) && count > 1) {
    facts.no_channel = Concat(key, " = ", count, ": must be 1 (SGLang receives weights over NCCL ",
                              "with tensor parallelism alone)");
  }
  return true;
}

// [[-0.1, 5, null], ...]; the log-probability of an entry may be null where `nulls`.
bool ReadPairs(JsonScanner& scan, bool nulls, std::vector<TokenId>& ids,
               std::vector<std::optional<float>>& logprobs) {
  if (scan.TakeNull()) return true;
  return answer::ForItems(scan, [&] {
    size_t at = 0;
    answer::ForItems(scan, [&] {
      const size_t index = at++;
      if (index == 0) {
        std::optional<float>& logprob = logprobs.emplace_back();
        if (!nulls || !scan.TakeNull()) answer::Logprob(scan, logprob.emplace());
      } else if (index == 1) {
        answer::Token(scan, ids.emplace_back());
      } else {
        scan.Skip();
      }
    });
    if (at < 2) scan.Fail("must be [log-probability, token, text]");
  });
}

bool ReadEnd(JsonScanner& scan, std::optional<AnswerEnd>& end) {
  if (scan.TakeNull()) return true;
  return answer::ForKeys(scan, [&](const std::string& key) {
    if (key != "type") return false;
    std::string text;
    if (!scan.Text(text)) return true;
    if (text == "stop")
      end = AnswerEnd::kStop;
    else if (text == "length")
      end = AnswerEnd::kLength;
    else if (text == "abort")
      end = AnswerEnd::kAbort;
    else
      scan.FailValue(Printable(text), "must be stop, length or abort", "");
    return true;
  });
}

// The scored tokens are the last of the prompt's.
Status TakeScores(const GenerateCall& call, const std::vector<TokenId>& ids,
                  const std::vector<std::optional<float>>& logprobs, std::vector<float>& scores) {
  if (!call.first_scored.has_value() || ids.empty()) return Status::Ok();
  const size_t num_scored = call.tokens.size() - static_cast<size_t>(*call.first_scored);
  if (ids.size() < num_scored) {
    return InvalidArgument("input_token_logprobs: are ", ids.size(), " of at least ", num_scored);
  }
  const size_t first = ids.size() - num_scored;
  for (size_t i = 0; i < num_scored; ++i) {
    const TokenId wanted = call.tokens[call.tokens.size() - num_scored + i];
    if (ids[first + i] != wanted || !logprobs[first + i].has_value()) {
      return InvalidArgument("input_token_logprobs: entry ", first + i, " is not of token ",
                             wanted);
    }
    scores.push_back(*logprobs[first + i]);
  }
  return Status::Ok();
}

class Sglang final : public Dialect {
 public:
  std::string_view name() const override { return "sglang"; }

  std::vector<HttpCall> Join() const override {
    std::vector<HttpCall> calls(kNumJoinCalls);
    calls[kServerInfo] = {.method = "GET", .target = "/server_info"};
    calls[kModelInfo] = Label();
    calls[kTokenize] = JsonCall("/tokenize", [](JsonWriter& json) {
      json.Put("prompt", kProbeText);
      json.Put("add_special_tokens", false);
    });
    return calls;
  }

  Status ReadJoin(size_t index, const ServerAnswer& answer, ServerFacts& facts) const override {
    if (index == kTokenize && answer.status >= 400 && answer.status < 500) return Status::Ok();
    if (answer.status != 200) {
      return Unavailable(Join()[index].target, " answered ", answer.status, ": ",
                         ReadError(answer.body));
    }
    JsonScanner scan(answer.body);
    answer::ForKeys(scan, [&](const std::string& key) {
      const JsonScanner::Kind kind = scan.NextKind();
      const bool text = kind == JsonScanner::Kind::kText;
      if (index == kServerInfo && key == "version" && text) return scan.Text(facts.version);
      if (index == kServerInfo && key == "context_length" && kind == JsonScanner::Kind::kNumber) {
        return scan.Integer(1, answer::kMaxCount, "", facts.max_tokens.emplace());
      }
      if (index == kServerInfo && kind == JsonScanner::Kind::kNumber) {
        if (key == "tp_size") return scan.Integer(1, kMostRanks, "", facts.num_workers);
        if (key == "dp_size" || key == "pp_size") return ReadReplicas(scan, key, facts);
      }
      if (index == kModelInfo && key == "served_model_name" && text) return scan.Text(facts.model);
      if (index == kTokenize && key == "tokens") {
        return answer::Tokens(scan, facts.probe.emplace());
      }
      return false;
    });
    scan.End();
    facts.tells_versions = true;
    facts.takes_seeds = true;
    return scan.status();
  }

  HttpCall Generate(const GenerateCall& call) const override {
    return JsonCall("/generate", [&](JsonWriter& json) {
      json.Put("rid", call.id);
      json.Key("input_ids");
      json.BeginArray();
      for (const TokenId id : call.tokens) json.Value(id);
      json.EndArray();
      PutSampling(json, call);
      json.Put("return_logprob", true);
      // The token before the first scored one predicts it.
      if (call.first_scored.has_value()) {
        json.Put("logprob_start_len", std::max<int64_t>(0, *call.first_scored - 1));
      }
    });
  }

  Result<GenerateAnswer> ReadGenerate(const GenerateCall& call,
                                      std::string_view body) const override {
    GenerateAnswer answer;
    std::vector<TokenId> sampled, given;
    std::vector<std::optional<float>> sampled_logprobs, given_logprobs;
    std::optional<AnswerEnd> end;
    JsonScanner scan(body);
    answer::ForKeys(scan, [&](const std::string& key) {
      if (key == "output_ids") return scan.TakeNull() || answer::Tokens(scan, answer.tokens);
      if (key != "meta_info") return false;
      return answer::ForKeys(scan, [&](const std::string& name) {
        if (name == "finish_reason") return ReadEnd(scan, end);
        if (name == "output_token_logprobs") {
          return ReadPairs(scan, false, sampled, sampled_logprobs);
        }
        if (name == "input_token_logprobs") return ReadPairs(scan, true, given, given_logprobs);
        if (name == "weight_versions") return answer::Spans(scan, answer.spans);
        return false;
      });
    });
    scan.End();
    if (!scan.ok()) return scan.status();
    if (!end.has_value()) return InvalidArgument("meta_info.finish_reason: is missing");
    if (sampled != answer.tokens) {
      return InvalidArgument("output_token_logprobs: are of ", sampled.size(),
                             " tokens, not of the ", answer.tokens.size(), " in output_ids");
    }
    answer.end = *end;
    for (const std::optional<float>& logprob : sampled_logprobs) {
      answer.logprobs.push_back(logprob.value_or(0));
    }
    PACE_RETURN_IF_ERROR(TakeScores(call, given, given_logprobs, answer.scores));
    return answer;
  }

  std::vector<HttpCall> Abort(std::span<const std::string> ids) const override {
    std::vector<HttpCall> calls;
    for (const std::string& id : ids) {
      calls.push_back(JsonCall("/abort_request", [&](JsonWriter& json) { json.Put("rid", id); }));
    }
    return calls;
  }

  HttpCall Pause(InFlightRule mode) const override {
    return JsonCall("/pause_generation", [&](JsonWriter& json) {
      json.Put("mode", mode == InFlightRule::kEnd         ? "abort"
                       : mode == InFlightRule::kRecompute ? "retract"
                                                          : "in_place");
    });
  }

  // It does not read ahead.
  HttpCall Fetch(const std::string& /*folder*/) const override { return {}; }
  Result<bool> ReadFetch(std::string_view /*body*/) const override { return true; }

  std::vector<HttpCall> Load(const std::string& folder, const std::string& label, InFlightRule mode,
                             bool /*fetched*/) const override {
    return {JsonCall("/update_weights_from_disk", [&](JsonWriter& json) {
      json.Put("model_path", folder);
      json.Put("weight_version", label);
      json.Put("flush_cache", mode != InFlightRule::kKeep);
      json.Put("keep_pause", true);
    })};
  }

  HttpCall OpenChannel(const ChannelInvitation& invitation) const override {
    return JsonCall("/init_weights_update_group", [&](JsonWriter& json) {
      json.Put("master_address", invitation.address);
      json.Put("master_port", invitation.port);
      json.Put("rank_offset", 1);
      json.Put("world_size", invitation.num_workers + 1);
      json.Put("group_name", invitation.group);
      json.Put("backend", "nccl");
    });
  }
  // Updates happen in a session. One that a run left open keeps the next from beginning.
  std::vector<UpdateCall> Update(const WeightSet& weights, const std::string& label,
                                 InFlightRule mode,
                                 const ChannelInvitation& channel) const override {
    const auto session = [](const char* target) { return JsonCall(target, [](JsonWriter&) {}); };
    const std::vector<WeightChunk> buckets = BucketsOf(weights, channel.buffer_bytes);
    std::vector<UpdateCall> calls;
    calls.push_back({.http = session("/end_weight_update"), .may_be_refused = true});
    calls.push_back({.http = session("/begin_weight_update")});
    for (const WeightChunk& bucket : buckets) {
      const bool last = &bucket == &buckets.back();
      HttpCall call = JsonCall("/update_weights_from_distributed", [&](JsonWriter& json) {
        PutTensorLists(json, weights, bucket, "dtypes");
        json.Put("group_name", channel.group);
        json.Put("load_format", "flattened_bucket");
        json.Put("flush_cache", last && mode != InFlightRule::kKeep);
        if (last) json.Put("weight_version", label);
      });
      calls.push_back({.http = std::move(call), .sends = {bucket}});
    }
    calls.push_back({.http = session("/end_weight_update")});
    return calls;
  }

  HttpCall Resume() const override {
    return JsonCall("/continue_generation", [](JsonWriter&) {});
  }
  HttpCall Label() const override { return {.method = "GET", .target = "/model_info"}; }
  Result<std::string> ReadLabel(std::string_view body) const override {
    return answer::TextOf(body, "weight_version");
  }
  HttpCall Health() const override { return {.method = "GET", .target = "/health"}; }
  HttpCall Metrics() const override { return {.method = "GET", .target = "/metrics"}; }
  FirstTokens ReadMetrics(std::string_view body) const override {
    return answer::FirstTokensOf(body, "sglang:time_to_first_token_seconds");
  }
  std::string ReadError(std::string_view body) const override { return answer::ErrorOf(body); }
};

}  // namespace

const Dialect& SglangDialect() {
  static const Sglang dialect;
  return dialect;
}

}  // namespace pace
