// HttpCalls: any number of HTTP calls to one server at a time, on the caller's thread.
//
//   HttpCalls calls(server);
//   calls.Add(1, {.target = "/health"}, Seconds(10));
//   for (HttpCalls::Done& done : calls.Poll(Seconds(1))) ...
//
// Connections are kept and used again. Every call has a deadline, and an answer that grows beyond
// a bound is an error. No proxy is asked, whatever the environment says: engines are near.
//
// Thread-safety: none, but for Wake.
#ifndef PACE_ENGINES_HTTP_CALLS_H_
#define PACE_ENGINES_HTTP_CALLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "engines/dialect.h"
#include "http/client.h"

namespace pace {

// Where a server is, and how it knows us.
struct ServerAddress {
  std::string url = {};      // http://host:port or https://host:port, with a folder or without
  std::string token = {};    // sent as Authorization: Bearer; empty = none
  std::string ca_file = {};  // whom to trust for https; empty = the system's certificates
};

// Ok for what HttpCalls can call.
Status CheckServerUrl(const std::string& url);

class HttpCalls {
 public:
  explicit HttpCalls(const ServerAddress& server);
  ~HttpCalls();
  HttpCalls(const HttpCalls&) = delete;
  HttpCalls& operator=(const HttpCalls&) = delete;

  // Begins a call. REQUIRES: no call of this number is in flight
  void Add(int64_t call, const HttpCall& http, Seconds deadline);
  // Gives a call up, if it is in flight.
  void Remove(int64_t call);

  struct Done {
    int64_t call = 0;
    Result<ServerAnswer> answer;
  };
  // The calls that ended; waits for the first one for at most this long, or until Wake.
  std::vector<Done> Poll(Seconds patience);
  // This machine's address on the way to the server; empty until it has answered.
  const std::string& local_address() const;
  // From any thread: the Poll under way, or else the next one, returns at once.
  void Wake();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_ENGINES_HTTP_CALLS_H_
