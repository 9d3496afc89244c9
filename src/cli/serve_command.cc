// pace serve
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/open_policy.h"
#include "config/settings.h"
#include "core/atomic_file.h"
#include "core/file.h"
#include "execution/engine_maker.h"
#include "execution/tiny_model.h"
#include "http/server.h"
#include "record/build_info.h"
#include "serve/engine_host.h"
#include "serve/server.h"

namespace pace {
namespace {

struct ServeArguments {
  std::string model;
  std::vector<std::string> overrides;
  std::string host = "127.0.0.1";
  int64_t port = 8000;
  std::string api_key_file;
  bool allow_anyone = false;
  std::string served_model_name;
  std::string ready_file;
};

constexpr const char* kKeyVariable = "PACE_API_KEY";
constexpr size_t kMaxKeyBytes = 4096;
// Limits on generation requests in progress and on connections. The difference is reserved for
// other requests, such as health checks.
constexpr int64_t kMaxRequests = 1024;
constexpr int64_t kMaxConnections = kMaxRequests + 256;
// A connection and its request have two; files and the library have the rest.
constexpr rlim_t kNumDescriptors = 4 * kMaxConnections;
constexpr size_t kMaxBodyBytes = size_t{32} << 20;

// A model folder or a built-in model with default settings, or settings that name one.
Result<Settings> SettingsOf(const ServeArguments& arguments) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(arguments.model, ignored);
  Settings settings;
  if (is_folder || FindBuiltInModel(arguments.model) != nullptr) {
    settings.policy.model = arguments.model;
    PACE_RETURN_IF_ERROR(ApplyOverrides(settings, arguments.overrides));
    PACE_RETURN_IF_ERROR(settings.Validate());
  } else {
    PACE_ASSIGN_OR_RETURN(settings, LoadSettings(arguments.model, arguments.overrides));
  }
  // A client says when the cache goes (POST /pause?clear_cache), and scores prefixes by
  // prompt_logprobs.
  settings.engine.sync = SyncRule::kKeep;
  return settings;
}

Result<std::string> ReadKey(const ServeArguments& arguments) {
  std::string key;
  std::string where = kKeyVariable;
  if (!arguments.api_key_file.empty()) {
    where = "--api-key-file " + arguments.api_key_file;
    PACE_ASSIGN_OR_RETURN(key, ReadFile(arguments.api_key_file, kMaxKeyBytes));
    while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  } else if (const char* variable = std::getenv(kKeyVariable)) {
    key = variable;
  } else {
    return key;
  }
  const bool plain =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (key.empty() || !plain || key.size() > kMaxKeyBytes) {
    return InvalidArgument(where, ": must hold a key of printable ASCII characters");
  }
  return key;
}

bool IsLocal(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

Status CheckExposure(const ServeArguments& arguments, const std::string& key) {
  if (!key.empty() || arguments.allow_anyone || IsLocal(arguments.host)) return Status::Ok();
  return InvalidArgument("--host ", arguments.host,
                         ": whoever reaches this address could replace the weights (give a key "
                         "with --api-key-file or ",
                         kKeyVariable, ", or --allow-anyone on a private network)");
}

void AllowDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kNumDescriptors) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kNumDescriptors);
  ::setrlimit(RLIMIT_NOFILE, &limit);  // with fewer, connections wait
}

std::string UrlOf(const std::string& address, int64_t port) {
  const bool version_6 = address.find(':') != std::string::npos;
  return Concat("http://", version_6 ? "[" : "", address, version_6 ? "]" : "", ":", port);
}

// Waits until the program is told to end. REQUIRES: the signals are blocked in every thread.
void WaitForSignal(const sigset_t& signals) {
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
}

Status ServeModel(const ServeArguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  // Before any thread starts, so that all of them leave these signals to us.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  PACE_ASSIGN_OR_RETURN(const std::string key, ReadKey(arguments));
  PACE_RETURN_IF_ERROR(CheckExposure(arguments, key));
  PACE_ASSIGN_OR_RETURN(const Settings settings, SettingsOf(arguments));
  PACE_ASSIGN_OR_RETURN(Policy policy, OpenPolicy(settings.policy));
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> core, MakeEngine(settings, policy));
  PACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<EngineHost> host,
      EngineHost::Start(std::move(core), policy.weights, {.max_requests = kMaxRequests}));
  policy.weights = WeightSet();  // the engine has its own
  const std::string name =
      arguments.served_model_name.empty() ? settings.policy.model : arguments.served_model_name;
  ApiServer api({.api_key = key, .version = std::string(PaceVersion())},
                {.name = name,
                 .root = settings.policy.model,
                 .tokenizer = policy.tokenizer,
                 .chat_template = policy.chat_template},
                *host);

  AllowDescriptors();
  HttpServerOptions http;
  http.address = arguments.host == "localhost" ? "127.0.0.1" : arguments.host;
  http.port = arguments.port;
  http.max_connections = kMaxConnections;
  http.limits.max_body_bytes = kMaxBodyBytes;
  PACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<HttpServer> server,
      HttpServer::Start(http, [&api](const HttpMessage& request, const Cancellation& cancellation) {
        return api.Answer(request, cancellation);
      }));
  const std::string url = UrlOf(http.address, server->port());
  if (!arguments.ready_file.empty()) {
    PACE_RETURN_IF_ERROR(WriteFileAtomically(arguments.ready_file, url + "\n"));
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "serving %s at %s (ready in %.1f s)\n", name.c_str(), url.c_str(),
               elapsed.count());
  WaitForSignal(signals);
  return Status::Ok();
}

}  // namespace

void AddServe(const CommandLine& line) {
  line.Add<ServeArguments>(
      kServeCommand.name, kServeCommand.what,
      "pace serve tiny --port 8000\n"
      "  curl http://127.0.0.1:8000/v1/completions -d '{\"prompt\": \"3+4=\", \"temperature\": 0}'",
      [](CLI::App& app, ServeArguments& arguments) {
        app.add_option("model", arguments.model,
                       "A model folder, a built-in model (tiny, tiny-retool), a preset or a YAML "
                       "file")
            ->required();
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_option("--host", arguments.host, "IP address to listen on")->capture_default_str();
        app.add_option("--port", arguments.port, "0 = any free port")
            ->check(CLI::Range(0, 65535))
            ->capture_default_str();
        app.add_option("--api-key-file", arguments.api_key_file,
                       "File with the key that every request must carry (default: the environment "
                       "variable PACE_API_KEY, else none)");
        app.add_flag("--allow-anyone", arguments.allow_anyone,
                     "Listen without a key on an address that other machines reach");
        app.add_option("--served-model-name", arguments.served_model_name,
                       "By which requests call the model (default: as given)");
        app.add_option("--ready-file", arguments.ready_file,
                       "File to write the URL to once requests are answered");
      },
      ServeModel);
}

}  // namespace pace
