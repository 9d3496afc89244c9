#include "serve/server.h"

#include <poll.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <memory>
#include <random>
#include <utility>

#include "core/json_writer.h"
#include "core/printable.h"
#include "core/utf8.h"

namespace pace {
namespace {

constexpr std::string_view kBearer = "bearer ";
constexpr size_t kMaxIdBytes = 1024;

int64_t UnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

uint64_t RandomBits() {
  thread_local std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string RandomId() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (int half = 0; half < 2; ++half) {
    const uint64_t bits = RandomBits();
    for (int digit = 0; digit < 16; ++digit) id += kDigits[bits >> (4 * digit) & 15];
  }
  return id;
}

// In a time that depends on the lengths alone.
bool SameText(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

HttpResponse Refuse(const ApiError& error) {
  return {.status = error.code, .body = ErrorText(error)};
}

ApiError ErrorOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return {.code = 400, .message = status.message()};
    case StatusCode::kNotFound:
      return {.code = 404, .message = status.message()};
    case StatusCode::kUnavailable:
      return {.code = 503, .message = status.message()};
    default:
      return {.code = 500, .message = status.message()};
  }
}

HttpResponse Refuse(const Status& status) {
  return Refuse(ErrorOf(status));
}

// {"KEY": VALUE}.
template <typename T>
HttpResponse One(std::string_view key, const T& value) {
  HttpResponse response;
  JsonWriter json(response.body);
  json.BeginObject();
  json.Put(key, value);
  json.EndObject();
  return response;
}

// Counts itself for as long as it lives.
class Active {
 public:
  explicit Active(std::atomic<int64_t>& count) : count_(count) { ++count_; }
  ~Active() { --count_; }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  std::atomic<int64_t>& count_;
};

// A request on its way through the host. Streams keep it while they write.
struct Job {
  GenerateRequest request;
  AnswerHead head;
  std::vector<TokenId> prompt_tokens;
  GroupRequest group;
};

void StreamAnswer(Job& job, EngineHost& host, const PromptRules& rules,
                  const Cancellation& cancellation, HttpStream& out) {
  AnswerStream events(job.head, job.request, job.prompt_tokens, rules);
  // A client that stops reading sends nothing either, so the end of its side is the end of both.
  const Cancellation gone{.descriptor = cancellation.descriptor,
                          .events = static_cast<int16_t>(cancellation.events | POLLRDHUP)};
  const Result<Generation> generation = host.Generate(
      job.head.id, std::move(job.group),
      [&](std::span<const TokenRecord> tokens) { return out.Send(events.Tokens(tokens)); }, gone);
  out.Send(generation.ok() ? events.Finish(*generation) : ErrorEvent(ErrorOf(generation.status())));
}

// One metric in Prometheus' text format, with one sample per label value.
class MetricsText {
 public:
  explicit MetricsText(const std::string& model) { AppendJsonText(model_, model); }

  void Begin(std::string_view name, std::string_view kind, std::string_view help) {
    name_ = name;
    text_ += Concat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n");
  }
  template <typename T>
  void Sample(T value, std::string_view label = "") {
    text_ +=
        Concat(name_, "{model_name=", model_, label.empty() ? "" : ",", label, "} ", value, "\n");
  }
  // Of a summary.
  void Sum(double sum, int64_t count) {
    text_ += Concat(name_, "_sum{model_name=", model_, "} ", sum, "\n");
    text_ += Concat(name_, "_count{model_name=", model_, "} ", count, "\n");
  }
  template <typename T>
  void Put(std::string_view name, std::string_view kind, std::string_view help, T value) {
    Begin(name, kind, help);
    Sample(value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string model_;
  std::string_view name_;
  std::string text_;
};

}  // namespace

// In the order of docs/serve.md.
const ApiServer::Route ApiServer::kRoutes[] = {
    {"POST", "/inference/v1/generate", "Tokens in, tokens out", &ApiServer::GenerateTokens},
    {"POST", "/v1/completions", "Continue a text", &ApiServer::Completions},
    {"POST", "/v1/chat/completions", "Reply to messages", &ApiServer::ChatCompletions},
    {"GET", "/v1/models", "The model that is served", &ApiServer::Models},
    {"POST", "/tokenize", "Token ids of a text or of messages", &ApiServer::Tokenize},
    {"POST", "/detokenize", "The text of token ids", &ApiServer::Detokenize},
    {"POST", "/pause", "Pause generation: mode=abort, wait or keep", &ApiServer::Pause},
    {"POST", "/resume", "Resume generation", &ApiServer::Resume},
    {"GET", "/is_paused", "Whether generation is paused", &ApiServer::IsPaused},
    {"POST", "/abort_requests", "Abort requests by id, or all", &ApiServer::AbortRequests},
    {"POST", "/inference/v1/abort_requests", "Abort requests by id",
     &ApiServer::AbortNamedRequests},
    {"POST", "/collective_rpc", "reload_weights from a folder", &ApiServer::CollectiveRpc},
    {"POST", "/update_weight_version", "Change the label of the weights",
     &ApiServer::UpdateWeightVersion},
    {"POST", "/init_weight_transfer_engine", "Begin to receive weights: nothing to do",
     &ApiServer::InitWeightTransfer},
    {"POST", "/shutdown_weight_transfer_engine", "End to receive weights: nothing to do",
     &ApiServer::ShutdownWeightTransfer},
    {"POST", "/start_weight_update", "Begin an update of the weights",
     &ApiServer::StartWeightUpdate},
    {"POST", "/update_weights", "Load weights from a folder", &ApiServer::UpdateWeights},
    {"POST", "/finish_weight_update", "End an update of the weights",
     &ApiServer::FinishWeightUpdate},
    {"GET", "/weight_info", "The label of the weights", &ApiServer::WeightInfo},
    {"POST", "/reset_prefix_cache", "Clear the cache of running responses",
     &ApiServer::ResetPrefixCache},
    {"GET", "/metrics", "Counters in Prometheus' text format", &ApiServer::Metrics},
    {"GET", "/health", "200 while the engine works", &ApiServer::Health},
    {"GET", "/ping", "The same", &ApiServer::Health},
    {"POST", "/ping", "The same", &ApiServer::Health},
    {"GET", "/version", "The version of this program", &ApiServer::Version},
    {"GET", "/server_info", "What is served, and how", &ApiServer::ServerInfo},
    {"GET", "/load", "Requests in progress", &ApiServer::ServerLoad},
    {"GET", "/get_world_size", "Devices of the engine", &ApiServer::WorldSize},
    {"GET", "/openapi.json", "These routes", &ApiServer::OpenApi},
};

ApiServer::ApiServer(ApiServerOptions options, ServedModel model, EngineHost& host)
    : options_(std::move(options)),
      model_(std::move(model)),
      host_(host),
      rules_{
          .config = &host.config(),
          .tokenizer = &model_.tokenizer,
          .chat_template = model_.chat_template ? &*model_.chat_template : nullptr,
          .max_model_len = std::min(host.config().max_positions, host.num_blocks() * kBlockTokens)},
      created_(UnixSeconds()) {}

HttpResponse ApiServer::Answer(const HttpMessage& request, const Cancellation& cancellation) {
  if (!IsAuthorized(request)) return {.status = 401, .body = R"({"error":"Unauthorized"})"};
  const Result<Target> target = ReadTarget(request.target);
  if (!target.ok()) return Refuse(target.status());
  bool is_path = false;
  for (const Route& route : kRoutes) {
    if (route.path != target->path) continue;
    is_path = true;
    if (route.method == request.method) {
      return (this->*route.handler)({request, *target, cancellation});
    }
  }
  if (is_path) return Refuse(ApiError{.code = 405, .message = "Method Not Allowed"});
  return Refuse(ApiError{.code = 404, .message = "Not Found"});
}

bool ApiServer::IsAuthorized(const HttpMessage& request) const {
  if (options_.api_key.empty()) return true;
  const std::string_view given = request.Header("authorization");
  // The scheme in any case, as in vLLM.
  const bool is_bearer =
      given.size() >= kBearer.size() &&
      std::equal(kBearer.begin(), kBearer.end(), given.begin(),
                 [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  return is_bearer && SameText(given.substr(kBearer.size()), options_.api_key);
}

Status ApiServer::CheckModel(const std::optional<std::string>& model) const {
  if (!model || model->empty() || *model == model_.name) return Status::Ok();
  return NotFound("The model `", Printable(*model), "` does not exist. Served: ", model_.name);
}

HttpResponse ApiServer::Generate(ApiKind kind, const Context& context) {
  auto job = std::make_shared<Job>();
  const Status status = [&]() -> Status {
    PACE_ASSIGN_OR_RETURN(job->request, ReadGenerateRequest(kind, context.request.body));
    PACE_RETURN_IF_ERROR(CheckModel(job->request.model));
    PACE_ASSIGN_OR_RETURN(job->prompt_tokens, PromptTokens(job->request, rules_));
    PACE_ASSIGN_OR_RETURN(job->group,
                          EngineRequest(job->request, job->prompt_tokens, rules_, RandomBits()));
    return Status::Ok();
  }();
  if (!status.ok()) return Refuse(status);
  // As in vLLM, the header's id comes first.
  std::string id = ReplaceIllFormed(context.request.Header("x-request-id").substr(0, kMaxIdBytes));
  if (id.empty()) id = job->request.request_id;
  if (id.empty()) id = RandomId();
  job->head = {.id = Concat(IdPrefix(kind), id), .model = model_.name, .created = UnixSeconds()};
  if (job->request.stream) {
    HttpResponse response;
    response.content_type = "text/event-stream; charset=utf-8";
    response.stream = [this, job, cancellation = context.cancellation](HttpStream& out) {
      const Active active(num_active_);
      StreamAnswer(*job, host_, rules_, cancellation, out);
    };
    return response;
  }
  const Active active(num_active_);
  const Result<Generation> generation =
      host_.Generate(job->head.id, std::move(job->group), {}, context.cancellation);
  if (!generation.ok()) return Refuse(generation.status());
  HttpResponse response;
  response.body = AnswerText(job->head, job->request, job->prompt_tokens, *generation, rules_);
  return response;
}

HttpResponse ApiServer::GenerateTokens(const Context& context) {
  return Generate(ApiKind::kTokens, context);
}

HttpResponse ApiServer::Completions(const Context& context) {
  return Generate(ApiKind::kCompletion, context);
}

HttpResponse ApiServer::ChatCompletions(const Context& context) {
  return Generate(ApiKind::kChat, context);
}

HttpResponse ApiServer::Models(const Context& /*context*/) {
  HttpResponse response;
  JsonWriter json(response.body);
  json.BeginObject();
  json.Put("object", "list");
  json.Key("data");
  json.BeginArray();
  json.BeginObject();
  json.Put("id", model_.name);
  json.Put("object", "model");
  json.Put("created", created_);
  json.Put("owned_by", "pace");
  json.Put("root", model_.root);
  json.Put("parent", nullptr);
  json.Put("max_model_len", rules_.max_model_len);
  json.Key("permission");
  json.BeginArray();
  json.EndArray();
  json.EndObject();
  json.EndArray();
  json.EndObject();
  return response;
}

HttpResponse ApiServer::Tokenize(const Context& context) {
  const Result<TokenizeRequest> request = ReadTokenizeRequest(context.request.body);
  if (!request.ok()) return Refuse(request.status());
  const Status model = CheckModel(request->prompt.model);
  if (!model.ok()) return Refuse(model);
  const Result<std::vector<TokenId>> tokens = PromptTokens(request->prompt, rules_);
  if (!tokens.ok()) return Refuse(tokens.status());
  return {.body = TokenizeAnswer(*tokens, *request, rules_)};
}

HttpResponse ApiServer::Detokenize(const Context& context) {
  const Result<DetokenizeRequest> request = ReadDetokenizeRequest(context.request.body);
  if (!request.ok()) return Refuse(request.status());
  const Status model = CheckModel(request->model);
  if (!model.ok()) return Refuse(model);
  return {.body = DetokenizeAnswer(request->tokens, model_.tokenizer)};
}

HttpResponse ApiServer::Pause(const Context& context) {
  const Result<PauseRequest> request = ReadPauseRequest(context.target);
  if (!request.ok()) return Refuse(request.status());
  host_.Pause(request->mode, request->clear_cache, context.cancellation);
  return One("status", "paused");
}

HttpResponse ApiServer::Resume(const Context& /*context*/) {
  host_.Resume();
  return One("status", "resumed");
}

HttpResponse ApiServer::IsPaused(const Context& /*context*/) {
  return One("is_paused", host_.paused());
}

HttpResponse ApiServer::AbortRequests(const Context& context) {
  const Result<std::vector<std::string>> ids =
      ReadAbortRequest(context.request.body, /*required=*/false);
  if (!ids.ok()) return Refuse(ids.status());
  const int64_t count = ids->empty() ? host_.AbortAll() : host_.Abort(KnownIds(*ids));
  HttpResponse response;
  JsonWriter json(response.body);
  json.BeginObject();
  json.Put("status", "aborted");
  json.Put("aborted", count);
  json.EndObject();
  return response;
}

HttpResponse ApiServer::AbortNamedRequests(const Context& context) {
  const Result<std::vector<std::string>> ids =
      ReadAbortRequest(context.request.body, /*required=*/true);
  if (!ids.ok()) return Refuse(ids.status());
  host_.Abort(KnownIds(*ids));
  return {};
}

HttpResponse ApiServer::Load(const Result<std::string>& folder, std::string_view done) {
  if (!folder.ok()) return Refuse(folder.status());
  const Status status = host_.LoadWeights(*folder);
  // A folder that is not there or not right is the caller's mistake.
  if (!status.ok()) return Refuse(ApiError{.code = 400, .message = status.message()});
  return {.body = std::string(done)};
}

HttpResponse ApiServer::CollectiveRpc(const Context& context) {
  const Result<RpcRequest> request = ReadRpcRequest(context.request.body);
  if (request.ok() && request->inspects) return Inspection();
  const Result<std::string> folder =
      request.ok() ? Result<std::string>(request->folder) : Result<std::string>(request.status());
  return Load(folder, R"({"results":[null]})");
}

// The network in the form in which vLLM prints modules, as much of it as clients compare.
HttpResponse ApiServer::Inspection() const {
  const ModelConfig& config = *rules_.config;
  HttpResponse response;
  JsonWriter json(response.body);
  json.BeginObject();
  json.Key("results");
  json.BeginArray();
  json.Value(Concat("Model(\n  (embed_tokens): Embedding(num_embeddings=", config.vocab_size,
                    ", embedding_dim=", config.hidden_size, ")\n  (layers): ModuleList(\n    (0-",
                    config.num_layers - 1, "): ", config.num_layers, " x DecoderLayer()\n  )\n)"));
  json.EndArray();
  json.EndObject();
  return response;
}

HttpResponse ApiServer::UpdateWeightVersion(const Context& context) {
  const Result<std::string> label = ReadLabelRequest(context.request.body);
  if (!label.ok()) return Refuse(label.status());
  const Status status = host_.SetLabel(*label);
  if (!status.ok()) return Refuse(status);
  HttpResponse response;
  JsonWriter json(response.body);
  json.BeginObject();
  json.Put("success", true);
  json.Put("new_version", *label);
  json.EndObject();
  return response;
}

HttpResponse ApiServer::InitWeightTransfer(const Context& context) {
  const Status status = ReadInitRequest(context.request.body);
  if (!status.ok()) return Refuse(status);
  return One("message", "Weight transfer initialized");
}

HttpResponse ApiServer::ShutdownWeightTransfer(const Context& /*context*/) {
  updating_ = false;
  return One("message", "Weight transfer shut down");
}

HttpResponse ApiServer::StartWeightUpdate(const Context& /*context*/) {
  if (updating_.exchange(true)) {
    return Refuse(InvalidArgument("an update is in progress (finish_weight_update ends it)"));
  }
  return One("message", "Weight update started");
}

HttpResponse ApiServer::UpdateWeights(const Context& context) {
  if (!updating_) return Refuse(InvalidArgument("no update was started (start_weight_update)"));
  return Load(ReadUpdateRequest(context.request.body), R"({"message":"Weights updated"})");
}

HttpResponse ApiServer::FinishWeightUpdate(const Context& context) {
  const Result<std::optional<std::string>> label = ReadFinishRequest(context.request.body);
  if (!label.ok()) return Refuse(label.status());
  if (!updating_.exchange(false)) {
    return Refuse(InvalidArgument("no update was started (start_weight_update)"));
  }
  const Status status = label->has_value() ? host_.SetLabel(**label) : Status::Ok();
  if (!status.ok()) return Refuse(status);
  return One("message", "Weight update finished");
}

HttpResponse ApiServer::WeightInfo(const Context& /*context*/) {
  return One("weight_version", host_.label());
}

HttpResponse ApiServer::ResetPrefixCache(const Context& context) {
  const Result<bool> running = ReadResetRequest(context.target);
  if (!running.ok()) return Refuse(running.status());
  if (*running) host_.ClearCache();
  return One("success", true);
}

HttpResponse ApiServer::Metrics(const Context& /*context*/) {
  const EngineHostStats stats = host_.stats();
  const auto used = static_cast<double>(stats.num_blocks - stats.num_free_blocks);
  MetricsText text(model_.name);
  text.Put("vllm:num_requests_running", "gauge", "Responses that have a slot in the engine.",
           stats.num_running);
  text.Put("vllm:num_requests_waiting", "gauge", "Requests that wait for one.", stats.num_waiting);
  text.Put("vllm:kv_cache_usage_perc", "gauge", "Share of the KV cache in use, 0 to 1.",
           used / static_cast<double>(std::max<int64_t>(stats.num_blocks, 1)));
  text.Put("vllm:num_preemptions_total", "counter", "Responses that lost their cache to others.",
           stats.engine.num_preemptions);
  text.Put("vllm:prompt_tokens_total", "counter", "Tokens of prompts.", stats.num_prompt_tokens);
  text.Put("vllm:generation_tokens_total", "counter", "Tokens sampled.",
           stats.engine.num_sampled_tokens);
  text.Begin("vllm:request_success_total", "counter", "Requests that ended, by how.");
  text.Sample(stats.num_stopped, "finished_reason=\"stop\"");
  text.Sample(stats.num_at_length, "finished_reason=\"length\"");
  text.Sample(stats.num_aborted, "finished_reason=\"abort\"");
  text.Begin("vllm:time_to_first_token_seconds", "summary",
             "Seconds from a request to its first token.");
  text.Sum(stats.engine.first_token_time.count(), stats.engine.num_first_tokens);
  text.Put("pace:weight_loads_total", "counter", "Loads of weights.", stats.num_weight_loads);
  text.Put("pace:passes_total", "counter", "Forward passes.", stats.engine.num_passes);
  text.Put("pace:busy_seconds_total", "counter", "Seconds in forward passes.",
           stats.engine.busy_time.count());
  text.Put("pace:paused", "gauge", "1 while generation is paused.", host_.paused() ? 1 : 0);
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = text.Take();
  return response;
}

HttpResponse ApiServer::Health(const Context& /*context*/) {
  const Status health = host_.health();
  if (!health.ok()) return Refuse(ApiError{.code = 503, .message = health.message()});
  return {};
}

HttpResponse ApiServer::Version(const Context& /*context*/) {
  HttpResponse response;
  JsonWriter json(response.body);
  json.BeginObject();
  json.Put("version", options_.version);
  json.Put("server", "pace");
  json.EndObject();
  return response;
}

HttpResponse ApiServer::ServerInfo(const Context& /*context*/) {
  HttpResponse response;
  JsonWriter json(response.body);
  json.BeginObject();
  json.Put("server", "pace");
  json.Put("version", options_.version);
  json.Put("model", model_.name);
  json.Put("root", model_.root);
  json.Put("max_model_len", rules_.max_model_len);
  json.Put("vocab_size", rules_.config->vocab_size);
  json.Put("has_chat_template", rules_.chat_template != nullptr);
  json.Put("num_kv_blocks", host_.num_blocks());
  json.Put("kv_block_tokens", kBlockTokens);
  json.EndObject();
  return response;
}

HttpResponse ApiServer::ServerLoad(const Context& /*context*/) {
  return One("server_load", num_active_.load());
}

HttpResponse ApiServer::WorldSize(const Context& /*context*/) {
  return One("world_size", 1);
}

HttpResponse ApiServer::OpenApi(const Context& /*context*/) {
  HttpResponse response;
  JsonWriter json(response.body);
  json.BeginObject();
  json.Put("openapi", "3.1.0");
  json.Key("info");
  json.BeginObject();
  json.Put("title", "pace serve");
  json.Put("version", options_.version);
  json.EndObject();
  json.Key("paths");
  json.BeginObject();
  for (const Route& route : kRoutes) {
    // Routes of one path follow each other; the first opens it.
    const bool is_first = &route == kRoutes || (&route - 1)->path != route.path;
    const bool is_last = &route + 1 == std::end(kRoutes) || (&route + 1)->path != route.path;
    if (is_first) {
      json.TextKey(route.path);
      json.BeginObject();
    }
    json.Key(route.method == "GET" ? "get" : "post");
    json.BeginObject();
    json.Put("summary", route.summary);
    json.Key("responses");
    json.BeginObject();
    json.Key("200");
    json.BeginObject();
    json.Put("description", "Successful Response");
    json.EndObject();
    json.EndObject();
    json.EndObject();
    if (is_last) json.EndObject();
  }
  json.EndObject();
  json.EndObject();
  return response;
}

}  // namespace pace
