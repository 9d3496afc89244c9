// HttpServer: a small HTTP/1.1 server, one thread per connection.
//
// It parses strictly and bounds everything: connections, the size of one message and of all
// messages together, and the time a peer may take to send a message. Requests beyond a bound get
// 503. A connection beyond max_connections takes the place of the one that has waited longest for
// a request, so that idle and slow clients cannot lock others out; if all are being served it gets
// 503. Requests from web pages get 403 (CheckSite).
//
// A response is whole, or a stream that its handler writes piece by piece. A handler may take as
// long as it wants.
//
// The handler's Cancellation reports that its client has disconnected. A client that only closed
// its sending side still gets its response: the server sends a "100 Continue", which a
// disconnected client answers with a reset. HTTP/1.0 clients do not know interim responses and
// count as connected until they are answered.
//
// Thread-safety: the handler is called from many threads; Start, port and the destructor belong
// to one thread.
#ifndef PACE_HTTP_SERVER_H_
#define PACE_HTTP_SERVER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/file_descriptor.h"
#include "core/mutex.h"
#include "core/status.h"
#include "http/message.h"

namespace pace {

// What a streamed body is written to.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Sends bytes now. False: the client is gone, or did not read them in time; the stream is over.
  virtual bool Send(std::string_view bytes) = 0;
};

struct HttpResponse {
  int64_t status = 200;
  std::string body{};
  std::string content_type = "application/json";
  // If set, writes the body in place of `body`, on the connection's thread. The Cancellation of
  // the handler stays valid meanwhile.
  std::function<void(HttpStream&)> stream{};
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // or one of IPv6, without brackets
  int64_t port = 8080;                // 0: any that is free
  // As many again may be sending their last response or be ending.
  int64_t max_connections = 1024;
  // Bytes of all requests and responses in progress, beyond the first 64 KiB of each.
  int64_t max_total_bytes = int64_t{256} << 20;
  // For a whole message, between two of them, and for each piece of a stream.
  Seconds patience{60};
  // A connection that waits for a request no longer than this is never ended for another.
  Seconds min_idle{1};
  HttpLimits limits{};
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpMessage&, const Cancellation&)>;

  static Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                   Handler handler);
  // Ends every connection, running handlers by way of their Cancellation.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int64_t port() const { return port_; }

 private:
  // Used by its thread alone, except for what the server's mutex guards.
  struct Connection {
    FileDescriptor socket{};
    std::thread thread{};
    // It is sending its last response, or has to make room; it does not count toward
    // max_connections.
    bool ending = false;
    // While it waits for a request: since when.
    std::optional<std::chrono::steady_clock::time_point> waiting_since{};
    bool done = false;
    // A handler is running, so nothing else is being sent.
    bool handling = false;
    int64_t counted_bytes = 0;
  };

  HttpServer(const HttpServerOptions& options, Handler handler)
      : options_(options), handler_(std::move(handler)) {}

  void AcceptAll();
  void AcceptOne() PACE_EXCLUDES(mutex_);
  void AskWhoHungUp() PACE_EXCLUDES(mutex_);
  void Serve(Connection& connection);
  // False when the connection is to end.
  bool ServeOne(Connection& connection, HttpReader& reader);
  bool IsFull() const PACE_REQUIRES(mutex_);
  // Ends the connection that has waited longest for a request, if any may be ended.
  void EndIdle() PACE_REQUIRES(mutex_);
  bool ReadMessage(Connection& connection, HttpReader& reader);
  HttpResponse Handle(Connection& connection, const HttpMessage& request) PACE_EXCLUDES(mutex_);
  // False when the connection is to end.
  bool Stream(Connection& connection, const HttpResponse& response, bool chunked, bool keep_alive);
  // Sets the number of bytes that the connection holds; false: over max_total_bytes.
  bool Count(Connection& connection, size_t bytes) PACE_EXCLUDES(mutex_);
  void JoinFinished() PACE_EXCLUDES(mutex_);

  const HttpServerOptions options_;
  const Handler handler_;
  FileDescriptor listener_;
  FileDescriptor stop_;
  FileDescriptor hangups_;  // an epoll of the clients whose handlers are running
  int64_t port_ = 0;
  bool local_ = false;  // reachable from this machine alone
  std::thread acceptor_;

  Mutex mutex_;
  std::list<Connection> connections_ PACE_GUARDED_BY(mutex_);
  int64_t counted_bytes_ PACE_GUARDED_BY(mutex_) = 0;
};

}  // namespace pace

#endif  // PACE_HTTP_SERVER_H_
