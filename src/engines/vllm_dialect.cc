#include <algorithm>
#include <array>
#include <charconv>

#include "core/json_writer.h"
#include "core/printable.h"
#include "engines/answer_scan.h"
#include "engines/dialect.h"
#include "http/message.h"

namespace pace {
namespace {

// The server puts this in front of the ids that its clients choose.
constexpr std::string_view kIdPrefix = "generate-tokens-";

enum JoinCall : size_t {
  kVersion,
  kModels,
  kTokenize,
  kWeightInfo,
  kGenerates,
  kNetwork,
  kFetches,
  kWorldSize,
  kNumJoinCalls
};

void PutTokens(JsonWriter& json, std::string_view key, std::span<const TokenId> tokens) {
  json.Key(key);
  json.BeginArray();
  for (const TokenId id : tokens) json.Value(id);
  json.EndArray();
}

void PutTexts(JsonWriter& json, std::string_view key, std::span<const std::string> texts) {
  json.Key(key);
  json.BeginArray();
  for (const std::string& text : texts) json.Value(text);
  json.EndArray();
}

void PutSampling(JsonWriter& json, const GenerateCall& call) {
  json.Key("sampling_params");
  json.BeginObject();
  json.Put("max_tokens", call.max_tokens);
  json.Put("temperature", call.sampling.temperature);
  json.Put("top_p", call.sampling.top_p);
  json.Put("top_k", call.sampling.top_k);
  json.Put("min_p", call.sampling.min_p);
  // Servers take signed seeds.
  if (call.seed.has_value()) json.Put("seed", static_cast<int64_t>(*call.seed >> 1));
  json.Put("logprobs", 0);
  if (call.first_scored.has_value()) json.Put("prompt_logprobs", 0);
  // Our stop tokens are the only ones: the model's own would end responses otherwise.
  json.Put("ignore_eos", true);
  PutTokens(json, "stop_token_ids", call.stop_tokens);
  if (call.stop_strings.empty()) {
    json.Put("detokenize", false);
  } else {
    PutTexts(json, "stop", call.stop_strings);
  }
  json.EndObject();
}

// {"content": [{"token_id": 5, "logprob": -0.1}, ...]}, or null.
bool ReadLogprobs(JsonScanner& scan, std::vector<TokenId>& ids, std::vector<float>& logprobs) {
  if (scan.TakeNull()) return true;
  return answer::ForKeys(scan, [&](const std::string& key) {
    if (key != "content" || scan.TakeNull()) return key == "content";
    return answer::ForItems(scan, [&] {
      TokenId id = 0;
      float logprob = 1;  // of none
      answer::ForKeys(scan, [&](const std::string& name) {
        if (name == "token_id") return answer::Token(scan, id);
        if (name == "logprob") return answer::Logprob(scan, logprob);
        return false;
      });
      if (logprob > 0.5F) scan.Fail("has no logprob");
      ids.push_back(id);
      logprobs.push_back(logprob);
    });
  });
}

bool ReadEnd(JsonScanner& scan, AnswerEnd& end) {
  std::string text;
  if (!scan.Text(text)) return false;
  if (text == "stop") {
    end = AnswerEnd::kStop;
  } else if (text == "length") {
    end = AnswerEnd::kLength;
  } else if (text == "abort") {
    end = AnswerEnd::kAbort;
  } else {
    return scan.FailValue(Printable(text), "must be stop, length or abort", "");
  }
  return true;
}

// [null, {"5": {"logprob": -0.1}}, ...]: entry i is of token i. Only those from `first` on count.
bool ReadScores(JsonScanner& scan, const GenerateCall& call, std::vector<float>& scores) {
  if (scan.TakeNull()) return true;
  size_t at = 0;
  return answer::ForItems(scan, [&] {
    const size_t index = at++;
    if (scan.TakeNull()) return;
    const bool wanted = call.first_scored.has_value() &&
                        index >= static_cast<size_t>(*call.first_scored) &&
                        index < call.tokens.size();
    if (!wanted) {
      scan.Skip();
      return;
    }
    const std::string id = Concat(call.tokens[index]);
    bool found = false;
    answer::ForKeys(scan, [&](const std::string& key) {
      if (key != id) return false;
      return answer::ForKeys(scan, [&](const std::string& name) {
        if (name != "logprob") return false;
        found = answer::Logprob(scan, scores.emplace_back());
        return true;
      });
    });
    if (!found) scan.Fail("has no log-probability of the token there");
  });
}

bool ReadChoice(JsonScanner& scan, GenerateAnswer& answer, std::vector<TokenId>& logprob_ids,
                bool& has_end) {
  return answer::ForKeys(scan, [&](const std::string& key) {
    if (key == "token_ids") return scan.TakeNull() || answer::Tokens(scan, answer.tokens);
    if (key == "logprobs") return ReadLogprobs(scan, logprob_ids, answer.logprobs);
    if (key == "finish_reason") {
      has_end = true;
      return ReadEnd(scan, answer.end);
    }
    if (key == "weight_versions") return answer::Spans(scan, answer.spans);
    return false;
  });
}

// The number behind `name` in a text; 0 where there is none.
int64_t NumberAfter(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = text.substr(at + name.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return error == std::errc() && number <= answer::kMaxCount ? std::max<int64_t>(number, 0) : 0;
}

// The lines of a text, one after another.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// A network as PyTorch prints modules: a line of embed_tokens with its sizes, then `layers` with
// its members "(0): ..." or "(0-3): 4 x ..." on lines that are indented further.
NetworkShape ShapeIn(std::string_view text) {
  NetworkShape shape;
  std::optional<size_t> layers;  // the indentation of `layers`
  std::optional<size_t> member;  // of its members
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos) continue;
    const std::string_view words = line.substr(indent);
    if (shape.hidden_size == 0 && words.starts_with("(embed_tokens): ")) {
      shape.vocabulary = NumberAfter(words, "org_vocab_size=");
      if (shape.vocabulary == 0) shape.vocabulary = NumberAfter(words, "num_embeddings=");
      shape.hidden_size = NumberAfter(words, "embedding_dim=");
    } else if (!layers.has_value() && words.starts_with("(layers): ")) {
      layers = indent;
    } else if (layers.has_value()) {
      if (indent <= *layers) break;
      if (!member.has_value()) member = indent;
      if (indent != *member || !words.starts_with('(')) continue;
      const std::string_view range = words.substr(0, words.find(')'));
      const bool several = range.find('-') != std::string_view::npos;
      shape.num_layers = NumberAfter(range, several ? "-" : "(") + 1;
    }
  }
  return shape;
}

class Vllm final : public Dialect {
 public:
  std::string_view name() const override { return "vllm"; }

  std::vector<HttpCall> Join() const override {
    std::vector<HttpCall> calls(kNumJoinCalls);
    calls[kVersion] = {.method = "GET", .target = "/version"};
    calls[kModels] = {.method = "GET", .target = "/v1/models"};
    calls[kTokenize] = {.method = "POST", .target = "/tokenize"};
    JsonWriter json(calls[kTokenize].body);
    json.BeginObject();
    json.Put("prompt", kProbeText);
    json.Put("add_special_tokens", false);
    json.EndObject();
    calls[kWeightInfo] = Label();
    // Of the same router as the route that generates, and without effect.
    calls[kGenerates] = {.method = "POST",
                         .target = "/inference/v1/abort_requests",
                         .body = R"({"request_ids":["none"]})"};
    calls[kNetwork] = {.method = "POST",
                       .target = "/collective_rpc",
                       .body = R"({"method":"get_model_inspection"})"};
    calls[kFetches] = Fetch("");
    calls[kWorldSize] = {.method = "GET", .target = "/get_world_size"};
    return calls;
  }

  Status ReadJoin(size_t index, const ServerAnswer& answer, ServerFacts& facts) const override {
    // It has no tokenizer, or one that cannot read the text.
    if (index == kTokenize && answer.status >= 400 && answer.status < 500) return Status::Ok();
    if (index == kWeightInfo && answer.status == 404) {
      return InvalidArgument(
          "has no /weight_info: must be vLLM 0.32 or newer, started with VLLM_SERVER_DEV_MODE=1");
    }
    if (index == kGenerates && (answer.status == 403 || answer.status == 404)) {
      return InvalidArgument(
          "does not serve /inference/v1/generate: must be vLLM 0.32 or newer, started with "
          "--enable-scale-out");
    }
    // It does not describe its network; loading the first weights will tell.
    if (index == kNetwork && answer.status >= 400) return Status::Ok();
    // Without the plugin it does not know the method.
    if (index == kFetches) {
      const Result<std::string> state = FirstResult(answer.body);
      facts.fetches = answer.status == 200 && state.ok() && *state == "none";
      return Status::Ok();
    }
    // `pace serve` has one process and no such route.
    if (index == kWorldSize) {
      return answer.status == 200 ? ReadWorldSize(answer.body, facts) : Status::Ok();
    }
    if (answer.status != 200) {
      return Unavailable(Join()[index].target, " answered ", answer.status, ": ",
                         ReadError(answer.body));
    }
    if (index == kVersion) {
      PACE_ASSIGN_OR_RETURN(facts.version, answer::TextOf(answer.body, "version"));
      const Result<std::string> server = answer::TextOf(answer.body, "server");
      // A seed of a request ends vLLM on the CPU when the prompt is read in several passes, and
      // slows it down elsewhere.
      facts.takes_seeds = server.ok() && *server == "pace";
    } else if (index == kModels) {
      return ReadModels(answer.body, facts);
    } else if (index == kTokenize) {
      return ReadProbe(answer.body, facts);
    } else if (index == kNetwork) {
      return ReadNetwork(answer.body, facts);
    } else if (index == kWeightInfo) {
      PACE_RETURN_IF_ERROR(ReadLabel(answer.body).status());
      facts.tells_versions = true;
    }
    return Status::Ok();
  }

  HttpCall Generate(const GenerateCall& call) const override {
    HttpCall http{.target = "/inference/v1/generate"};
    JsonWriter json(http.body);
    json.BeginObject();
    json.Put("request_id", call.id);
    PutTokens(json, "token_ids", call.tokens);
    PutSampling(json, call);
    json.EndObject();
    return http;
  }

  Result<GenerateAnswer> ReadGenerate(const GenerateCall& call,
                                      std::string_view body) const override {
    GenerateAnswer answer;
    std::vector<TokenId> logprob_ids;
    bool has_end = false;
    int64_t num_choices = 0;
    JsonScanner scan(body);
    answer::ForKeys(scan, [&](const std::string& key) {
      if (key == "prompt_logprobs") return ReadScores(scan, call, answer.scores);
      if (key != "choices") return false;
      return answer::ForItems(scan, [&] {
        if (++num_choices > 1) scan.Fail("is a second choice: must be one");
        ReadChoice(scan, answer, logprob_ids, has_end);
      });
    });
    scan.End();
    if (!scan.ok()) return scan.status();
    if (num_choices != 1 || !has_end) return InvalidArgument("has no choice that has ended");
    if (logprob_ids != answer.tokens) {
      return InvalidArgument("logprobs: are of ", logprob_ids.size(), " tokens, not of the ",
                             answer.tokens.size(), " in token_ids");
    }
    return answer;
  }

  std::vector<HttpCall> Abort(std::span<const std::string> ids) const override {
    std::vector<std::string> all(ids.begin(), ids.end());
    for (const std::string& id : ids) all.push_back(Concat(kIdPrefix, id));
    HttpCall http{.target = "/abort_requests"};
    JsonWriter json(http.body);
    json.BeginObject();
    PutTexts(json, "request_ids", all);
    json.EndObject();
    return {http};
  }

  HttpCall Pause(InFlightRule mode) const override {
    if (mode == InFlightRule::kEnd) return {.target = "/pause?mode=abort&clear_cache=true"};
    return {.target = Concat("/pause?mode=keep&clear_cache=", mode == InFlightRule::kRecompute)};
  }

  // Of python/vllm_plugin.
  HttpCall Fetch(const std::string& folder) const override {
    return Rpc("pace_fetch", "folder", folder);
  }
  Result<bool> ReadFetch(std::string_view body) const override {
    PACE_ASSIGN_OR_RETURN(const std::string state, FirstResult(body));
    if (state == "ready") return true;
    if (state == "loading") return false;
    return InvalidArgument("pace_fetch: says ", Printable(state), ": must be ready or loading");
  }

  std::vector<HttpCall> Load(const std::string& folder, const std::string& label, InFlightRule,
                             bool fetched) const override {
    const HttpCall load = fetched ? Rpc("pace_install", "folder", folder)
                                  : Rpc("reload_weights", "weights_path", folder);
    HttpCall name{.target = "/update_weight_version"};
    JsonWriter named(name.body);
    named.BeginObject();
    named.Put("new_version", label);
    named.EndObject();
    return {load, name};
  }

  HttpCall OpenChannel(const ChannelInvitation& invitation) const override {
    HttpCall open{.target = "/init_weight_transfer_engine"};
    JsonWriter json(open.body);
    json.BeginObject();
    json.Key("init_info");
    json.BeginObject();
    json.Put("nccl_unique_id_b64", EncodeBase64(invitation.id));
    json.Put("rank_offset", 1);
    json.Put("world_size", invitation.num_workers + 1);
    json.Put("packed", invitation.packed);
    json.Put("packed_buffer_size_bytes", invitation.buffer_bytes);
    json.Put("packed_num_buffers", 2);
    json.EndObject();
    json.EndObject();
    return open;
  }
  std::vector<UpdateCall> Update(const WeightSet& weights, const std::string& label, InFlightRule,
                                 const ChannelInvitation& channel) const override {
    UpdateCall all{.http = {.target = "/update_weights"},
                   .sends = ChunksOf(weights, channel.buffer_bytes)};
    JsonWriter lists(all.http.body);
    lists.BeginObject();
    lists.Key("update_info");
    lists.BeginObject();
    PutTensorLists(lists, weights, {.count = weights.views().size()}, "dtype_names");
    lists.EndObject();
    lists.EndObject();
    UpdateCall end{.http = {.target = "/finish_weight_update"}};
    JsonWriter json(end.http.body);
    json.BeginObject();
    json.Put("weight_version", label);
    json.EndObject();
    return {{.http = {.target = "/start_weight_update"}}, std::move(all), std::move(end)};
  }

  HttpCall Resume() const override { return {.target = "/resume"}; }
  HttpCall Label() const override { return {.method = "GET", .target = "/weight_info"}; }
  Result<std::string> ReadLabel(std::string_view body) const override {
    return answer::TextOf(body, "weight_version");
  }
  HttpCall Health() const override { return {.method = "GET", .target = "/health"}; }
  HttpCall Metrics() const override { return {.method = "GET", .target = "/metrics"}; }
  FirstTokens ReadMetrics(std::string_view body) const override {
    return answer::FirstTokensOf(body, "vllm:time_to_first_token_seconds");
  }
  std::string ReadError(std::string_view body) const override { return answer::ErrorOf(body); }

 private:
  static HttpCall Rpc(std::string_view method, std::string_view key, const std::string& value) {
    HttpCall call{.target = "/collective_rpc"};
    JsonWriter json(call.body);
    json.BeginObject();
    json.Put("method", method);
    json.Key("kwargs");
    json.BeginObject();
    json.TextKey(std::string(key));
    json.Value(value);
    json.EndObject();
    json.EndObject();
    return call;
  }

  // {"results": [TEXT, ...]}, one for each process of the server: the first text that differs from
  // "ready", so that all are ready where this says so.
  static Result<std::string> FirstResult(std::string_view body) {
    std::string text;
    JsonScanner scan(body);
    answer::ForKeys(scan, [&](const std::string& key) {
      if (key != "results" || scan.NextKind() != JsonScanner::Kind::kArray) return false;
      return answer::ForItems(scan, [&] {
        if ((text.empty() || text == "ready") && scan.NextKind() == JsonScanner::Kind::kText) {
          scan.Text(text);
        } else {
          scan.Skip();
        }
      });
    });
    scan.End();
    if (!scan.ok()) return scan.status();
    return text;
  }

  static Status ReadNetwork(std::string_view body, ServerFacts& facts) {
    PACE_ASSIGN_OR_RETURN(const std::string text, FirstResult(body));
    facts.shape = ShapeIn(text);
    return Status::Ok();
  }

  static Status ReadWorldSize(std::string_view body, ServerFacts& facts) {
    JsonScanner scan(body);
    answer::ForKeys(scan, [&](const std::string& key) {
      return key == "world_size" && scan.Integer(1, 1 << 16, "", facts.num_workers);
    });
    scan.End();
    return scan.status();
  }

  static Status ReadModels(std::string_view body, ServerFacts& facts) {
    JsonScanner scan(body);
    answer::ForKeys(scan, [&](const std::string& key) {
      if (key != "data") return false;
      return answer::ForItems(scan, [&] {
        const bool first = facts.model.empty();
        answer::ForKeys(scan, [&](const std::string& name) {
          if (!first) return false;
          if (name == "id") return scan.Text(facts.model);
          if (name != "max_model_len" || scan.NextKind() != JsonScanner::Kind::kNumber) {
            return false;
          }
          return scan.Integer(1, answer::kMaxCount, "", facts.max_tokens.emplace());
        });
      });
    });
    scan.End();
    return scan.status();
  }

  static Status ReadProbe(std::string_view body, ServerFacts& facts) {
    JsonScanner scan(body);
    answer::ForKeys(scan, [&](const std::string& key) {
      if (key == "tokens") return answer::Tokens(scan, facts.probe.emplace());
      return false;
    });
    scan.End();
    return scan.status();
  }
};

}  // namespace

const Dialect& VllmDialect() {
  static const Vllm dialect;
  return dialect;
}

}  // namespace pace
