// LocalServers: `pace serve` processes of a run's own, on this machine.
//
// They serve the run's model on loopback ports and require a random token. A server that dies is
// restarted on its port. All of them end with this object, and also when this process is killed.
//
// Thread-safety: none.
#ifndef PACE_RUNTIME_LOCAL_SERVERS_H_
#define PACE_RUNTIME_LOCAL_SERVERS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

class LocalServers {
 public:
  struct Options {
    int64_t count = 0;
    std::string program = {};                 // pace
    std::vector<std::string> arguments = {};  // serve MODEL key=value ...
    std::string folder = {};                  // for logs and ready files; made if it is not there
    std::string token = {};
  };

  static Result<LocalServers> Start(Options options);
  ~LocalServers();
  LocalServers(LocalServers&& other) noexcept;
  LocalServers& operator=(LocalServers&&) = delete;

  // Where server i answers; empty while it starts.
  const std::string& url(size_t i) const { return servers_[i].url; }
  size_t size() const { return servers_.size(); }
  // Reads who is ready and starts again who died; a server that dies three times before it was
  // ready is an error that names its log.
  Status Watch();
  // Of server i, for tests; -1 while it is not running.
  pid_t pid(size_t i) const { return servers_[i].pid; }

 private:
  struct Server {
    pid_t pid = -1;
    std::string url = {};
    std::string port = "0";
    std::string ready_file = {};
    std::string log = {};
    int64_t num_early_deaths = 0;
    std::chrono::steady_clock::time_point next_start = {};
  };

  explicit LocalServers(Options options) : options_(std::move(options)) {}
  Status StartOne(Server& server);
  Status ReadReady(Server& server);

  Options options_;
  std::vector<Server> servers_;
};

}  // namespace pace

#endif  // PACE_RUNTIME_LOCAL_SERVERS_H_
