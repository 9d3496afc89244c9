// ApiServer: an EngineHost behind vLLM's HTTP interface.
//
// Clients written for vLLM use it unchanged for what it supports: token-in, token-out generation
// with weight versions per token, OpenAI's completions and chat, and the routes by which a trainer
// pauses the engine, aborts requests and replaces weights (docs/serve.md has the table). Answer
// handles one request and is called from many threads.
//
// With an API key every route needs `Authorization: Bearer KEY`; without one every client that
// reaches the port may replace the weights with those of any folder this process can read.
//
//   ApiServer api(options, model, *host);
//   auto server = HttpServer::Start(http, [&api](const HttpMessage& request, const auto& gone) {
//     return api.Answer(request, gone);
//   });
//
// Thread-safety: every method.
#ifndef PACE_SERVE_SERVER_H_
#define PACE_SERVE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"
#include "http/server.h"
#include "serve/api_request.h"
#include "serve/api_response.h"
#include "serve/control_request.h"
#include "serve/engine_host.h"
#include "serve/engine_request.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

struct ServedModel {
  std::string name;  // by which requests may call it
  std::string root;  // where it came from
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template{};
};

struct ApiServerOptions {
  std::string api_key{};  // empty: none
  std::string version{};  // of this program
};

class ApiServer {
 public:
  // Borrows the host.
  ApiServer(ApiServerOptions options, ServedModel model, EngineHost& host);

  HttpResponse Answer(const HttpMessage& request, const Cancellation& cancellation);

  // Tokens of a prompt with its response: the model's positions, or less where the KV cache ends
  // before.
  int64_t max_model_len() const { return rules_.max_model_len; }

 private:
  struct Context {
    const HttpMessage& request;
    const Target& target;
    const Cancellation& cancellation;
  };
  using Handler = HttpResponse (ApiServer::*)(const Context&);
  struct Route {
    std::string_view method;
    std::string_view path;
    std::string_view summary;
    Handler handler;
  };
  static const Route kRoutes[];

  bool IsAuthorized(const HttpMessage& request) const;
  Status CheckModel(const std::optional<std::string>& model) const;
  HttpResponse Generate(ApiKind kind, const Context& context);
  HttpResponse Load(const Result<std::string>& folder, std::string_view done);

  HttpResponse GenerateTokens(const Context& context);
  HttpResponse Completions(const Context& context);
  HttpResponse ChatCompletions(const Context& context);
  HttpResponse Models(const Context& context);
  HttpResponse Tokenize(const Context& context);
  HttpResponse Detokenize(const Context& context);
  HttpResponse Pause(const Context& context);
  HttpResponse Resume(const Context& context);
  HttpResponse IsPaused(const Context& context);
  HttpResponse AbortRequests(const Context& context);
  HttpResponse AbortNamedRequests(const Context& context);
  HttpResponse CollectiveRpc(const Context& context);
  HttpResponse Inspection() const;
  HttpResponse UpdateWeightVersion(const Context& context);
  HttpResponse InitWeightTransfer(const Context& context);
  HttpResponse ShutdownWeightTransfer(const Context& context);
  HttpResponse StartWeightUpdate(const Context& context);
  HttpResponse UpdateWeights(const Context& context);
  HttpResponse FinishWeightUpdate(const Context& context);
  HttpResponse WeightInfo(const Context& context);
  HttpResponse ResetPrefixCache(const Context& context);
  HttpResponse Metrics(const Context& context);
  HttpResponse Health(const Context& context);
  HttpResponse Version(const Context& context);
  HttpResponse ServerInfo(const Context& context);
  HttpResponse ServerLoad(const Context& context);
  HttpResponse WorldSize(const Context& context);
  HttpResponse OpenApi(const Context& context);

  const ApiServerOptions options_;
  const ServedModel model_;
  EngineHost& host_;
  const PromptRules rules_;
  const int64_t created_;                // seconds since 1970
  std::atomic<int64_t> num_active_ = 0;  // requests to generate
  std::atomic<bool> updating_ = false;   // between start_ and finish_weight_update
};

}  // namespace pace

#endif  // PACE_SERVE_SERVER_H_
