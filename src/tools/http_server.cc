#include "tools/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "core/json_writer.h"
#include "core/printable.h"

namespace pace {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

int LeftMs(TimePoint deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

// Whether the socket was ready before the deadline.
bool WaitFor(int socket, int16_t events, TimePoint deadline) {
  pollfd waiting{socket, events, 0};
  while (true) {
    const int ready = ::poll(&waiting, 1, LeftMs(deadline));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

bool SendAll(int socket, std::string_view text, TimePoint deadline) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN ? !WaitFor(socket, POLLOUT, deadline) : errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::string DetailText(const std::string& detail) {
  std::string text = "{\"detail\":";
  AppendJsonText(text, detail);
  return text + "}";
}

Result<FileDescriptor> Listen(const HttpServerOptions& options) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  const std::string where = Concat(Printable(options.address), ":", options.port);
  if (options.port < 0 || options.port > 65535) {
    return InvalidArgument("port = ", options.port, ": must be 0 to 65535");
  }
  if (::inet_pton(AF_INET, options.address.c_str(), &address.sin_addr) != 1) {
    return InvalidArgument("address = ", Printable(options.address),
                           ": must be an IPv4 address, such as 127.0.0.1 or 0.0.0.0");
  }
  FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return ErrnoStatus("socket");
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), 512) != 0) {
    return ErrnoStatus(Concat("listening on ", where));
  }
  return listener;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                      Handler handler) {
  auto server = std::unique_ptr<HttpServer>(new HttpServer(options, std::move(handler)));
  Result<FileDescriptor> listener = Listen(options);
  if (!listener.ok()) return listener.status();
  server->listener_ = std::move(listener).value();
  server->stop_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!server->stop_.valid()) return ErrnoStatus("eventfd");
  sockaddr_in bound{};
  socklen_t size = sizeof(bound);
  ::getsockname(server->listener_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  server->port_ = ntohs(bound.sin_port);
  server->acceptor_ = std::thread([raw = server.get()] { raw->AcceptAll(); });
  return server;
}

HttpServer::~HttpServer() {
  if (!acceptor_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);
  acceptor_.join();
  {
    MutexLock lock(mutex_);
    for (Connection& connection : connections_) ::shutdown(connection.socket.get(), SHUT_RDWR);
  }
  // No more are added, and each thread touches its own entry alone.
  std::list<Connection> all;
  {
    MutexLock lock(mutex_);
    all.swap(connections_);
  }
  for (Connection& connection : all) connection.thread.join();
}

void HttpServer::JoinFinished() {
  std::list<Connection> finished;
  MutexLock lock(mutex_);
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto next = std::next(at);
    if (at->done) finished.splice(finished.end(), connections_, at);
    at = next;
  }
  // A thread that is done says so as its last deed.
  for (Connection& connection : finished) connection.thread.join();
}

void HttpServer::AcceptAll() {
  while (true) {
    pollfd waiting[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    ::poll(waiting, std::size(waiting), 1000);
    if (waiting[1].revents != 0) return;
    JoinFinished();
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) {
      // Out of descriptors, most likely: those in use come back.
      if (errno == EMFILE || errno == ENFILE) ::poll(nullptr, 0, 50);
      continue;
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // A peer whose machine vanished answers no probe: then the socket hangs up.
    const int idle = 10;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
    MutexLock lock(mutex_);
    if (IsFull()) {
      const auto now = std::chrono::steady_clock::now();
      SendAll(socket.get(), HttpResponseText(503, DetailText("too many connections"), false), now);
      continue;
    }
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.thread = std::thread([this, &connection] {
      Serve(connection);
      ::shutdown(connection.socket.get(), SHUT_RDWR);
      MutexLock done(mutex_);
      connection.done = true;
    });
  }
}

// A client with one answer may ask the next question before the thread that gave it
// has ended; those that end are bounded too, for readers that take their time.
bool HttpServer::IsFull() const {
  const int64_t ending = std::count_if(connections_.begin(), connections_.end(),
                                       [](const Connection& c) { return c.ending; });
  const auto all = static_cast<int64_t>(connections_.size());
  return all - ending >= options_.max_connections || all >= 4 * options_.max_connections;
}

void HttpServer::Serve(Connection& connection) {
  HttpReader reader(HttpReader::Kind::kRequest, options_.limits);
  while (ServeOne(connection, reader)) {
  }
}

bool HttpServer::ReadMessage(int socket, HttpReader& reader) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<TimePoint::duration>(options_.patience);
  char buffer[65536];
  while (!reader.whole()) {
    if (!WaitFor(socket, POLLIN, deadline)) {
      if (reader.begun()) {
        SendAll(socket, HttpResponseText(408, DetailText("the request took too long"), false),
                deadline);
      }
      return false;
    }
    const ssize_t count = ::recv(socket, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return false;
    const Status status = reader.Feed(std::string_view(buffer, static_cast<size_t>(count)));
    if (!status.ok()) {
      SendAll(socket, HttpResponseText(400, DetailText(status.message()), false), deadline);
      return false;
    }
    if (reader.wants_continue() && !reader.whole()) {
      if (!SendAll(socket, "HTTP/1.1 100 Continue\r\n\r\n", deadline)) return false;
      reader.Continued();
    }
  }
  return true;
}

bool HttpServer::ServeOne(Connection& connection, HttpReader& reader) {
  const int socket = connection.socket.get();
  if (!ReadMessage(socket, reader)) return false;
  const Result<HttpMessage> request = reader.Take();
  const auto answer_by = [this] {
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<TimePoint::duration>(options_.patience);
  };
  if (!request.ok()) {
    SendAll(socket, HttpResponseText(400, DetailText(request.status().message()), false),
            answer_by());
    return false;
  }
  const HttpAnswer answer =
      handler_(*request, {.descriptor = socket, .events = static_cast<int16_t>(POLLRDHUP)});
  if (!request->keep_alive) {
    MutexLock lock(mutex_);
    connection.ending = true;
  }
  return SendAll(socket, HttpResponseText(answer.status, answer.body, request->keep_alive),
                 answer_by()) &&
         request->keep_alive;
}

}  // namespace pace
