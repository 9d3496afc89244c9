// `pace bench serve`: `pace serve` beside vLLM on the CPU, the same model, with 1, 8 and 64
// requests at a time; and pace's client of such servers (engines/remote_worker.h) beside a bare
// asyncio client of the same server. PACE_VLLM_PYTHON names the Python that has vLLM; without one
// `pace serve` is measured alone, and the report says why. PACE_VERL_PYTHON names one that has
// verl: its client and ours continue the same responses after a weight sync of the same server.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "bench/benches.h"
#include "bench/peer.h"
#include "core/clock.h"
#include "core/json_writer.h"
#include "engines/remote_worker.h"

namespace pace {
namespace {

constexpr int64_t kConcurrencies[] = {1, 8, 64};
constexpr int64_t kTokens = 64;  // of each response
constexpr int64_t kRequestsPerConnection = 4;
// What `pace serve` promises.
constexpr double kTimesVllm = 2;
constexpr double kReadySeconds = 2;
constexpr double kOfBareClient = 0.97;
// Of verl's time from the resume to the first token.
constexpr double kOfVerl = 0.2;
constexpr int64_t kResumedResponses = 32;
constexpr int64_t kResumedTokens = 200;
constexpr std::chrono::milliseconds kBeforeSync(200);
constexpr Seconds kPatience(600);
constexpr std::string_view kEnd = R"({"end":true})";

struct ServerUnderTest {
  std::string name;
  std::string url;
  std::array<Measurement, std::size(kConcurrencies)> tokens_per_s;
  Measurement bare_client;  // responses per second, at the largest concurrency
  Measurement our_client;
  std::string watched_url;  // a proxy that notes when requests come
  Measurement our_resume;   // seconds from a resume to the first token
  Measurement verl_resume;
};

ServerUnderTest MakeServer(const std::string& name, std::string url) {
  ServerUnderTest server;
  server.name = name;
  server.url = std::move(url);
  for (size_t i = 0; i < std::size(kConcurrencies); ++i) {
    server.tokens_per_s[i] = Rate(Concat(name, "_tokens_", kConcurrencies[i]), "1/s");
  }
  server.bare_client = Rate(Concat(name, "_bare_client_responses"), "1/s");
  server.our_client = Rate(Concat(name, "_our_client_responses"), "1/s");
  server.our_resume = {.name = Concat(name, "_our_resume_to_token"), .unit = "s"};
  server.verl_resume = {.name = Concat(name, "_verl_resume_to_token"), .unit = "s"};
  return server;
}

int64_t ResponsesAt(int64_t concurrency) {
  return std::max<int64_t>(concurrency * kRequestsPerConnection, 8);
}

std::string RequestOf(std::string_view key, std::string_view value) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  json.Put(key, value);
  json.EndObject();
  return text;
}

std::string StartRequest(std::string_view kind) {
  return RequestOf("start", kind);
}

Status MeasureBare(Peer& peer, ServerUnderTest& server, bool count) {
  for (size_t i = 0; i < std::size(kConcurrencies); ++i) {
    const int64_t concurrency = kConcurrencies[i];
    std::string request;
    JsonWriter json(request);
    json.BeginObject();
    json.Put("url", server.url);
    json.Put("concurrency", concurrency);
    json.Put("responses", ResponsesAt(concurrency));
    json.Put("tokens", kTokens);
    json.EndObject();
    PACE_ASSIGN_OR_RETURN(const PeerAnswer answer, peer.Ask(request, {"seconds", "tokens"}));
    if (!count) continue;
    const double seconds = answer.numbers.at("seconds");
    server.tokens_per_s[i].Add(answer.numbers.at("tokens") / seconds);
    if (i + 1 == std::size(kConcurrencies)) {
      server.bare_client.Add(static_cast<double>(ResponsesAt(concurrency)) / seconds);
    }
  }
  return Status::Ok();
}

// pace's own client, for as long as the benchmark runs.
class OurClient {
 public:
  OurClient(const std::string& url, int64_t vocabulary)
      : worker_({.server = {.url = url}, .core = OptionsOf(vocabulary)}) {}

  Status Begin(const std::string& model) { return Sync(model); }

  // Responses that a weight sync interrupts.
  Status Resume(const std::string& model) {
    Submit(kResumedResponses, kResumedTokens);
    std::this_thread::sleep_for(kBeforeSync);
    PublishedWeights weights{.version = PolicyVersion(next_version_++)};
    weights.folder = model;
    PACE_RETURN_IF_ERROR(worker_.Sync(weights));
    return WaitFor<FinishedResponse>(kResumedResponses);
  }

  // Seconds for these many responses.
  Result<double> Measure(int64_t responses) {
    const WallClock clock;
    Submit(responses, kTokens);
    PACE_RETURN_IF_ERROR(WaitFor<FinishedResponse>(responses));
    return clock.Now().count();
  }

 private:
  Status Sync(const std::string& model) {
    PublishedWeights weights{.version = PolicyVersion(next_version_++)};
    weights.folder = model;
    PACE_RETURN_IF_ERROR(worker_.Sync(weights));
    return WaitFor<WeightsSynced>(1);
  }

  void Submit(int64_t responses, int64_t tokens) {
    for (int64_t i = 0; i < responses; ++i) {
      GroupRequest request;
      request.group = GroupId(next_group_++);
      request.prompt = PromptIndex(i);
      request.prompt_tokens = {6, 13, 7, 16};
      request.num_responses = 1;
      request.stop.max_tokens = tokens;
      worker_.Submit(std::move(request));
    }
  }

  static RemoteOptions OptionsOf(int64_t vocabulary) {
    RemoteOptions options;
    options.run = Concat("bench-", ::getpid());
    options.max_requests = kConcurrencies[std::size(kConcurrencies) - 1];
    options.vocabulary = vocabulary;
    options.max_context = kTokens;
    return options;
  }

  template <typename Event>
  Status WaitFor(int64_t count) {
    const WallClock clock;
    while (count > 0) {
      if (clock.Now() > kPatience) return Unavailable("a server did not answer in time");
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      for (const RolloutEvent& event : worker_.Wait(deadline)) {
        if (const auto* gone = std::get_if<WorkerGone>(&event)) return gone->error;
        if (std::holds_alternative<Event>(event)) --count;
      }
    }
    return Status::Ok();
  }

  RemoteWorker worker_;
  int64_t next_group_ = 1;
  int64_t next_version_ = 0;
};

Status MeasureOurs(OurClient& client, ServerUnderTest& server, bool count) {
  const int64_t responses = ResponsesAt(kConcurrencies[std::size(kConcurrencies) - 1]);
  PACE_ASSIGN_OR_RETURN(const double seconds, client.Measure(responses));
  if (count) server.our_client.Add(static_cast<double>(responses) / seconds);
  return Status::Ok();
}

// Seconds from the last resume to the first token, as the proxy saw it.
Result<double> Watched(Peer& peer, const ServerUnderTest& server) {
  PACE_ASSIGN_OR_RETURN(const PeerAnswer answer,
                        peer.Ask(RequestOf("watched", server.url), {"seconds"}));
  return answer.numbers.at("seconds");
}

Status MeasureOurResume(Peer& peer, OurClient& client, const std::string& model,
                        ServerUnderTest& server, bool count) {
  PACE_RETURN_IF_ERROR(client.Resume(model));
  PACE_ASSIGN_OR_RETURN(const double seconds, Watched(peer, server));
  if (count) server.our_resume.Add(seconds);
  return Status::Ok();
}

Status MeasureVerlResume(Peer& peer, Peer& verl, const std::string& model, ServerUnderTest& server,
                         bool count) {
  std::string request;
  JsonWriter json(request);
  json.BeginObject();
  json.Put("url", server.watched_url);
  json.Put("responses", kResumedResponses);
  json.Put("tokens", kResumedTokens);
  json.Put("folder", model);
  json.Put("label", "verl");
  json.Put("wait", std::chrono::duration<double>(kBeforeSync).count());
  json.EndObject();
  PACE_RETURN_IF_ERROR(verl.Ask(request, {"seconds"}).status());
  PACE_ASSIGN_OR_RETURN(const double seconds, Watched(peer, server));
  if (count) server.verl_resume.Add(seconds);
  return Status::Ok();
}

void Report(std::vector<ServerUnderTest>& servers, BenchReport& report) {
  for (const ServerUnderTest& server : servers) {
    for (const Measurement& rate : server.tokens_per_s) report.measurements.push_back(rate);
    report.measurements.push_back(server.bare_client);
    report.measurements.push_back(server.our_client);
    report.measurements.push_back(RatioOf(server.our_client, server.bare_client,
                                          Concat(server.name, "_our_client_of_bare"), kOfBareClient,
                                          Limit::kAtLeast));
    report.measurements.push_back(server.our_resume);
    if (server.verl_resume.repetitions.empty()) continue;
    report.measurements.push_back(server.verl_resume);
    report.measurements.push_back(RatioOf(server.our_resume, server.verl_resume,
                                          Concat(server.name, "_our_resume_of_verl"), kOfVerl));
  }
  if (servers.size() < 2) return;
  for (size_t i = 0; i < std::size(kConcurrencies); ++i) {
    report.measurements.push_back(RatioOf(servers[0].tokens_per_s[i], servers[1].tokens_per_s[i],
                                          Concat("times_vllm_", kConcurrencies[i]), kTimesVllm,
                                          Limit::kAtLeast));
  }
}

std::string PythonOf(const char* variable, std::string_view folder) {
  const char* const chosen = std::getenv(variable);
  return chosen != nullptr && *chosen != '\0' ? chosen : Concat(folder, "/bin/python");
}

std::string VllmPython() {
  return PythonOf("PACE_VLLM_PYTHON", ".venv-vllm");
}

}  // namespace

Status RunServeBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  const char* const binary = std::getenv("PACE_BINARY");
  const std::string program =
      binary == nullptr ? Concat("/proc/", ::getpid(), "/exe") : std::string(binary);
  std::error_code error;
  const std::string given = options.model.empty() ? "models/tiny" : options.model;
  const std::string model = std::filesystem::canonical(given, error).string();
  if (error) return InvalidArgument("--model = ", given, ": must be a model directory");
  PACE_ASSIGN_OR_RETURN(
      Peer peer,
      Peer::Start("serve_peer.py", {program, model, Concat(options.num_threads), VllmPython()}));
  PACE_ASSIGN_OR_RETURN(const PeerAnswer own, peer.Ask(StartRequest("pace"), {"seconds"}));
  report.measurements.push_back(Known("ready", "s", own.numbers.at("seconds"), kReadySeconds));
  const auto vocabulary = static_cast<int64_t>(own.numbers.at("vocabulary"));
  std::vector<ServerUnderTest> servers;
  servers.push_back(MakeServer("pace", own.texts.at("url")));

  std::optional<Peer> vllm;
  if (options.python) {
    Result<Peer> started =
        Peer::Start("serve_peer.py", {program, model, Concat(options.num_threads), VllmPython()});
    PACE_RETURN_IF_ERROR(started.status());
    const Result<PeerAnswer> answer = started->Ask(StartRequest("vllm"), {"seconds"});
    report.more().Put("vllm", answer.ok() ? started->version() : answer.status().message());
    if (answer.ok()) {
      report.measurements.push_back(Known("vllm_ready", "s", answer->numbers.at("seconds")));
      servers.push_back(MakeServer("vllm", answer->texts.at("url")));
      vllm = std::move(started).value();
    }
  }
  std::optional<Peer> verl;
  std::string verl_note;
  if (options.python) {
    Result<Peer> started =
        Peer::Start("verl_peer.py", {}, PythonOf("PACE_VERL_PYTHON", ".venv-verl"));
    verl_note = started.status().message();
    if (started.ok()) verl = std::move(started).value();
  }
  for (ServerUnderTest& server : servers) {
    PACE_ASSIGN_OR_RETURN(const PeerAnswer watch, peer.Ask(RequestOf("watch", server.url)));
    server.watched_url = watch.texts.at("url");
  }
  std::vector<std::unique_ptr<OurClient>> clients;
  for (const ServerUnderTest& server : servers) {
    clients.push_back(std::make_unique<OurClient>(server.url, vocabulary));
    PACE_RETURN_IF_ERROR(clients.back()->Begin(model).At(server.name));
  }
  // The first round warms up and is not counted.
  for (int64_t round = 0; round <= options.repetitions; ++round) {
    for (size_t i = 0; i < servers.size(); ++i) {
      PACE_RETURN_IF_ERROR(MeasureBare(peer, servers[i], round > 0));
      PACE_RETURN_IF_ERROR(MeasureOurs(*clients[i], servers[i], round > 0).At(servers[i].name));
    }
    if (options.listener) options.listener(Concat("round ", round, " of ", options.repetitions));
  }
  clients.clear();
  for (int64_t round = 0; round <= options.repetitions; ++round) {
    for (ServerUnderTest& server : servers) {
      // A new one each time: after verl's sync the weights carry a foreign label.
      OurClient client(server.watched_url, vocabulary);
      PACE_RETURN_IF_ERROR(client.Begin(model).At(server.name));
      PACE_RETURN_IF_ERROR(
          MeasureOurResume(peer, client, model, server, round > 0).At(server.name));
      if (!verl.has_value()) continue;
      const Status status = MeasureVerlResume(peer, *verl, model, server, round > 0);
      if (round > 0) PACE_RETURN_IF_ERROR(status.At("verl"));
      if (!status.ok()) {
        verl_note = status.message();
        verl.reset();
      }
    }
    if (options.listener) {
      options.listener(Concat("resume round ", round, " of ", options.repetitions));
    }
  }
  PACE_RETURN_IF_ERROR(peer.Ask(kEnd).status());
  if (vllm.has_value()) PACE_RETURN_IF_ERROR(vllm->Ask(kEnd).status());
  if (options.python) report.more().Put("verl", verl.has_value() ? verl->version() : verl_note);
  Report(servers, report);
  JsonWriter& settings = report.settings();
  settings.Put("repetitions", options.repetitions);
  settings.Put("threads", options.num_threads);
  settings.Put("model", given);
  settings.Put("tokens_per_response", kTokens);
  settings.Put("responses_per_connection", kRequestsPerConnection);
  settings.Put("resumed_responses", kResumedResponses);
  settings.Put("tokens_per_resumed_response", kResumedTokens);
  return Status::Ok();
}

}  // namespace pace
