#include "runtime/server_fleet.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include "core/file.h"
#include "core/printable.h"
#include "engines/nccl_channel.h"
#include "execution/learner_options.h"
#include "model/devices.h"
#include "ranks/meeting_store.h"

namespace pace {
namespace {

constexpr std::chrono::seconds kRetry(2);
constexpr std::chrono::seconds kLongestPause(30);
constexpr int64_t kMaxRefused = 3;
constexpr int64_t kKeptVersions = 3;
constexpr size_t kMaxTokenBytes = 4096;

Result<std::string> ReadToken(const EngineSettings& engine) {
  if (engine.token_file.empty()) {
    const char* const token = std::getenv("PACE_ENGINE_TOKEN");
    return std::string(token == nullptr ? "" : token);
  }
  Result<std::string> text = ReadFile(engine.token_file, kMaxTokenBytes);
  if (!text.ok()) return text.status().At("engine.token_file");
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  return text;
}

// Differs between any two runs, so that labels of one are not taken for another's.
std::string RandomName() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device device;
  std::string name = "run-";
  for (int i = 0; i < 10; ++i) name += kDigits[device() % kDigits.size()];
  return name;
}

// Of the run: for its servers and their weights.
std::filesystem::path OwnFolder(const RunSetup& setup) {
  namespace fs = std::filesystem;
  if (!setup.checkpoints.empty()) return fs::path(setup.checkpoints).parent_path();
  std::error_code ignored;
  return fs::temp_directory_path(ignored) / Concat("pace-", ::getpid());
}

std::string WeightsPath(const Settings& settings, const RunSetup& setup) {
  if (!settings.engine.weights.empty()) return settings.engine.weights;
  return (OwnFolder(setup) / "weights").string();
}

LocalServers::Options OwnServers(const Settings& settings, const RunSetup& setup,
                                 const std::string& token) {
  LocalServers::Options options;
  options.count = settings.engine.fleet;
  const char* const program = std::getenv("PACE_BINARY");
  options.program = program == nullptr ? "/proc/self/exe" : program;
  options.arguments = {"serve",
                       settings.policy.model,
                       Concat("engine.threads=", settings.engine.threads),
                       Concat("engine.slots=", settings.engine.slots),
                       Concat("engine.kv_mib=", settings.engine.kv_mib),
                       Concat("engine.pass_tokens=", settings.engine.pass_tokens)};
  options.folder = (OwnFolder(setup) / "servers").string();
  options.token = token;
  return options;
}

GroupMeeting MeetingIn(const std::shared_ptr<MeetingStore>& store, const std::string& address) {
  return {.address = address,
          .port = store->port(),
          .put = [store](const std::string& key,
                         const std::string& value) { return store->Put(key, value); },
          // What is left there does no harm.
          .remove = [store](const std::string& key) { static_cast<void>(store->Remove(key)); }};
}

}  // namespace

Status CheckServers(const Settings& settings) {
  if (settings.engine.fleet > 0 && !settings.engine.urls.empty()) {
    return InvalidArgument("engine.fleet = ", settings.engine.fleet,
                           ": must be 0 where engine.urls names servers");
  }
  for (const std::string& url : settings.engine.urls) {
    PACE_RETURN_IF_ERROR(CheckServerUrl(url).At("engine.urls"));
  }
  const EngineSettings& engine = settings.engine;
  if (engine.quantization != EngineQuantization::kNone) {
    return InvalidArgument(
        "engine.quantization = fp8: rounds the weights of engines in this process, not of servers "
        "(start them with it: pace serve MODEL engine.quantization=fp8; set it to none here)");
  }
  if (engine.transfer == WeightTransfer::kNccl) {
    if (engine.fleet > 0 || engine.urls.empty()) {
      return InvalidArgument(
          "engine.transfer = nccl: needs vLLM or SGLang servers (engine.urls, engine.server)");
    }
    if (engine.transfer_address.find_first_of(" \t\r\n/\"") != std::string::npos) {
      return InvalidArgument("engine.transfer_address = ", Printable(engine.transfer_address),
                             ": must be a host name or an address, without a port "
                             "(engine.transfer_port)");
    }
    if (settings.policy.device != PolicyDevice::kCuda) {
      return InvalidArgument(
          "engine.transfer = nccl: sends from the trainer's GPU (device=cuda, or "
          "engine.transfer=folder)");
    }
  }
  const bool plain = settings.generation.temperature == 1 && settings.generation.top_p == 1;
  const bool scores = settings.admission.policy != AdmissionKind::kAcceptAll &&
                      settings.admission.UsesPrefixScores();
  if (scores && !plain) {
    return InvalidArgument(
        "engine.urls: servers score prefixes at temperature 1 without truncation alone (set "
        "generation.temperature=1, or choose --method raw)");
  }
  return Status::Ok();
}

std::chrono::seconds CallAgain::PauseAfterLoss(bool was_ready, bool unfit) {
  if (unfit) return kLongestPause;
  // One that cannot be reached is asked steadily: it may be starting.
  if (!was_ready) return kRetry;
  if (num_failures_++ == 0) return std::chrono::seconds(0);
  const int64_t doublings = std::min<int64_t>(num_failures_ - 2, 10);
  return std::min(kLongestPause, std::chrono::seconds(int64_t{1} << doublings));
}

Result<std::unique_ptr<ServerFleet>> ServerFleet::Create(const Settings& settings,
                                                         const Policy& policy,
                                                         const RunSetup& setup) {
  PACE_RETURN_IF_ERROR(CheckServers(settings));
  const EngineSettings& engine = settings.engine;
  RemoteWorkerOptions options;
  if (engine.fleet > 0) {
    options.server.token = RandomName();
  } else {
    PACE_ASSIGN_OR_RETURN(options.server.token, ReadToken(engine));
  }
  options.server.ca_file = engine.ca_file;
  options.dialect = engine.server == ServerKind::kSglang ? &SglangDialect() : &VllmDialect();
  options.core.run = RandomName();
  options.core.rollout = RolloutOptionsOf(settings);
  options.core.rollout.score_prefixes =
      options.core.rollout.score_prefixes && settings.admission.policy != AdmissionKind::kAcceptAll;
  options.core.max_requests = engine.requests;
  options.core.vocabulary = policy.config.vocab_size;
  options.core.shape = {.vocabulary = policy.config.vocab_size,
                        .hidden_size = policy.config.hidden_size,
                        .num_layers = policy.config.num_layers};
  options.core.max_context = std::min(settings.prompt.max_tokens + settings.generation.max_tokens,
                                      policy.config.max_positions);
  // A tokenizer of few characters cannot read the text; then there is nothing to compare.
  if (Result<std::vector<TokenId>> probe = policy.tokenizer.Encode(kProbeText); probe.ok()) {
    options.core.probe = std::move(probe).value();
  }
  options.core.generate_deadline = Seconds(engine.generate_s);
  options.core.load_deadline = Seconds(engine.load_s);
  options.core.control_deadline = Seconds(engine.control_s);
  options.core.pauses_in_turn = true;
  options.turns = std::make_shared<PauseTurns>();
  if (engine.transfer == WeightTransfer::kNccl) {
    options.core.weights = WeightPath::kChannel;
    const auto deadline =
        std::chrono::duration_cast<std::chrono::milliseconds>(options.core.load_deadline);
    // SGLang's workers look for NCCL's id there.
    std::shared_ptr<MeetingStore> store;
    if (engine.server == ServerKind::kSglang) {
      Result<std::unique_ptr<MeetingStore>> opened =
          OpenMeetingStore({.port = engine.transfer_port});
      if (!opened.ok()) return opened.status().At("engine.transfer_port");
      store = std::move(opened).value();
    }
    options.open_channel = [deadline, store, mib = engine.transfer_mib,
                            address = engine.transfer_address](const ChannelPeer& peer) {
      std::optional<GroupMeeting> meeting;
      if (store != nullptr) {
        meeting = MeetingIn(store, address.empty() ? peer.our_address : address);
      }
      return OpenNcclChannel({.num_workers = peer.num_workers,
                              .buffer_bytes = mib << 20,
                              .join = deadline,
                              .deadline = deadline},
                             std::move(meeting));
    };
  }
  const std::string token = options.server.token;
  auto fleet = std::unique_ptr<ServerFleet>(new ServerFleet(
      policy, setup.observer, std::move(options),
      WeightFolder(WeightsPath(settings, setup), kKeptVersions, DecoderDtype(settings)),
      DecoderDtype(settings), Seconds(engine.join_s)));
  if (engine.fleet == 0) {
    for (const std::string& url : engine.urls) fleet->servers_.push_back({.url = url});
    return fleet;
  }
  PACE_ASSIGN_OR_RETURN(LocalServers own, LocalServers::Start(OwnServers(settings, setup, token)));
  fleet->own_.emplace(std::move(own));
  fleet->servers_.resize(static_cast<size_t>(engine.fleet));
  return fleet;
}

ServerFleet::ServerFleet(const Policy& policy, RunObserver* observer, RemoteWorkerOptions options,
                         WeightFolder weights, Dtype dtype, Seconds patience)
    : policy_(policy),
      observer_(observer),
      options_(std::move(options)),
      give_up_(std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(patience)),
      weights_(std::move(weights)),
      dtype_(dtype) {}

ServerFleet::~ServerFleet() {
  weights_.Clear();
}

void ServerFleet::Note(const std::string& text) const {
  if (observer_ != nullptr) observer_->OnNote(text);
}

Status ServerFleet::Publish(PublishedWeights& published) {
  if (options_.core.weights == WeightPath::kChannel) {
    // Gathered from ranks, they are on the host in float32; otherwise they are what servers get.
    if (published.weights.residence() == Residence::kHost) {
      published.weights = InDtype(policy_.config, published.weights, dtype_);
    }
    return Status::Ok();
  }
  PACE_ASSIGN_OR_RETURN(const WeightSet host, ToHost(policy_.config, published.weights));
  PACE_ASSIGN_OR_RETURN(HeldFolder written,
                        weights_.Write(published.version, policy_.config, host));
  published.folder = std::move(written.path);
  published.folder_hold = std::move(written.hold);
  return Status::Ok();
}

Result<std::vector<size_t>> ServerFleet::Due(TimePoint now) {
  const bool any = std::any_of(servers_.begin(), servers_.end(),
                               [](const Server& server) { return server.ever_ready; });
  if (!any && now >= give_up_) {
    return Unavailable("no server of engine.urls is ready", WhoIsAbsent(),
                       " (are they running? engine.join_s waits longer)");
  }
  if (own_.has_value()) {
    PACE_RETURN_IF_ERROR(own_->Watch());
    for (size_t i = 0; i < servers_.size(); ++i) servers_[i].url = own_->url(i);
  }
  std::vector<size_t> due;
  for (size_t i = 0; i < servers_.size(); ++i) {
    const Server& server = servers_[i];
    if (!server.called && !server.url.empty() && now >= server.next_call) due.push_back(i);
  }
  return due;
}

std::unique_ptr<RolloutWorker> ServerFleet::Call(size_t server, std::function<void()> on_events) {
  servers_[server].called = true;
  RemoteWorkerOptions options = options_;
  options.server.url = servers_[server].url;
  return std::make_unique<RemoteWorker>(std::move(options), std::move(on_events));
}

void ServerFleet::OnReady(size_t server) {
  Server& state = servers_[server];
  if (state.ever_ready) Note(Concat(state.url, ": is back"));
  state.ready = true;
  state.ever_ready = true;
  state.last_note.clear();
}

Status ServerFleet::OnGone(size_t server, const WorkerGone& gone) {
  Server& state = servers_[server];
  if (gone.loss == Loss::kForeign) return gone.error;
  if (gone.loss == Loss::kUnfit && !state.ever_ready) return gone.error;
  const bool was_ready = std::exchange(state.ready, false);
  state.called = false;
  state.next_call = std::chrono::steady_clock::now() +
                    state.again.PauseAfterLoss(was_ready, gone.loss == Loss::kUnfit);
  state.last_error = gone.error.message();
  std::string note = was_ready ? Concat("lost ", gone.error.message(), " (its groups start again)")
                               : Concat("waiting for ", gone.error.message());
  if (note != state.last_note) Note(note);
  state.last_note = std::move(note);
  return Status::Ok();
}

Status ServerFleet::OnRefused(const Status& error) {
  Note(error.message());
  if (++num_refused_ < kMaxRefused) return Status::Ok();
  return Status(
      error.code(),
      Concat(kMaxRefused, " requests in a row were refused; the last: ", error.message()));
}

std::string ServerFleet::WhoIsAbsent() const {
  std::string text;
  for (const Server& server : servers_) {
    if (server.ready) continue;
    text += Concat("; ", server.last_error.empty()
                             ? (server.url.empty() ? std::string("a server") : server.url) +
                                   ": did not answer yet"
                             : server.last_error);
  }
  return text;
}

}  // namespace pace
