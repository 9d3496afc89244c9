// HttpServer: a small HTTP/1.1 server, one thread per connection.
//
// Strict about what it reads and bounded in everything: connections, sizes, and
// the time a peer may take to send a message. A handler learns that its client is
// gone by the Cancellation it is given.
//
// Thread-safety: the handler is called from many threads; Start, port and the
// destructor belong to one.
#ifndef PACE_TOOLS_HTTP_SERVER_H_
#define PACE_TOOLS_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/status.h"
#include "core/sync.h"
#include "tools/file_descriptor.h"
#include "tools/http_message.h"
#include "tools/program.h"

namespace pace {

struct HttpAnswer {
  int64_t status = 200;
  std::string body{};
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  int64_t port = 8080;  // 0: any that is free
  int64_t max_connections = 1024;
  // For a whole message, and between two of them.
  Seconds patience{60};
  HttpLimits limits{};
};

class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpMessage&, const Cancellation&)>;

  static Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                   Handler handler);
  // Ends every connection, running handlers by way of their Cancellation.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int64_t port() const { return port_; }

 private:
  struct Connection {
    FileDescriptor socket;
    std::thread thread;
    // Its last answer is on its way, so it takes nobody's place any more.
    bool ending = false;
    bool done = false;
  };

  HttpServer(const HttpServerOptions& options, Handler handler)
      : options_(options), handler_(std::move(handler)) {}

  void AcceptAll();
  void Serve(Connection& connection);
  // False when the connection is to end.
  bool ServeOne(Connection& connection, HttpReader& reader);
  bool IsFull() const PACE_REQUIRES(mutex_);
  bool ReadMessage(int socket, HttpReader& reader);
  void JoinFinished() PACE_EXCLUDES(mutex_);

  const HttpServerOptions options_;
  const Handler handler_;
  FileDescriptor listener_;
  FileDescriptor stop_;
  int64_t port_ = 0;
  std::thread acceptor_;

  Mutex mutex_;
  std::list<Connection> connections_ PACE_GUARDED_BY(mutex_);
};

}  // namespace pace

#endif  // PACE_TOOLS_HTTP_SERVER_H_
