// ServerFleet: the servers of engine.urls as a run sees them, there or absent.
//
// The driver asks it whom to call (Due), makes workers of them (Call) and tells it what became of
// them. It decides when to try again, when to give up and what to say about it; the driver
// carries it out. Weights for the servers go through it, too.
//
// Thread-safety: none, but for Publish, which may run on the trainer's thread.
#ifndef PACE_RUNTIME_SERVER_FLEET_H_
#define PACE_RUNTIME_SERVER_FLEET_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/status.h"
#include "engines/remote_worker.h"
#include "engines/weight_folder.h"
#include "execution/policy.h"
#include "execution/run.h"
#include "rollout/worker.h"
#include "runtime/local_servers.h"

namespace pace {

// Refused: addresses that are none, settings that servers cannot serve.
Status CheckServers(const Settings& settings);

// When a server is called again after it was lost or could not join: at once if it has served since
// it was called last, otherwise after a pause that grows, so that a server that breaks in every
// call does not occupy the run.
class CallAgain {
 public:
  // A response of it arrived.
  void Served() { num_failures_ = 0; }
  // `was_ready`: it had joined. `unfit`: it is not what the run needs, which will not change soon.
  std::chrono::seconds PauseAfterLoss(bool was_ready, bool unfit);

 private:
  int64_t num_failures_ = 0;  // since a response of it
};

class ServerFleet {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Refused: as by CheckServers, and a token file that cannot be read.
  static Result<std::unique_ptr<ServerFleet>> Create(const Settings& settings, const Policy& policy,
                                                     const RunSetup& setup);
  // Removes the weights that it wrote.
  ~ServerFleet();

  // Writes the weights where the servers read them, or makes them what is sent to them.
  Status Publish(PublishedWeights& published);

  // The servers to be called now. An error: none was ready in engine.join_s, or one of the run's
  // own does not start.
  Result<std::vector<size_t>> Due(TimePoint now);
  // A worker for a server; it begins to join.
  std::unique_ptr<RolloutWorker> Call(size_t server, std::function<void()> on_events);

  void OnReady(size_t server);
  // An error ends the run: the server is not what it needs, or another run uses it.
  Status OnGone(size_t server, const WorkerGone& gone);
  // A server refused a request. Three in a row are an error.
  Status OnRefused(const Status& error);
  void OnResponse(size_t server) {
    num_refused_ = 0;
    servers_[server].again.Served();
  }

  // "; URL is absent (why)" for each that is.
  std::string WhoIsAbsent() const;

 private:
  struct Server {
    std::string url = {};
    bool called = false;
    bool ready = false;
    bool ever_ready = false;
    TimePoint next_call = {};
    CallAgain again = {};
    std::string last_error = {};
    std::string last_note = {};
  };

  ServerFleet(const Policy& policy, RunObserver* observer, RemoteWorkerOptions options,
              WeightFolder weights, Dtype dtype, Seconds patience);
  void Note(const std::string& text) const;

  const Policy& policy_;
  RunObserver* const observer_;  // may be null
  const RemoteWorkerOptions options_;
  const TimePoint give_up_;
  WeightFolder weights_;
  const Dtype dtype_;  // of the weights that servers get
  std::optional<LocalServers> own_;
  std::vector<Server> servers_;
  int64_t num_refused_ = 0;  // in a row
};

}  // namespace pace

#endif  // PACE_RUNTIME_SERVER_FLEET_H_
