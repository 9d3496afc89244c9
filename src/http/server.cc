#include "http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "core/json_writer.h"
#include "core/parallel.h"
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

// An address to listen at, of either version.
struct ListenAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  bool local = false;
};

Result<ListenAddress> ReadAddress(const HttpServerOptions& options) {
  if (options.port < 0 || options.port > 65535) {
    return InvalidArgument("port = ", options.port, ": must be 0 to 65535");
  }
  ListenAddress address;
  const auto port = htons(static_cast<uint16_t>(options.port));
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (::inet_pton(AF_INET, options.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    address.size = sizeof(*v4);
    address.local = (ntohl(v4->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET6, options.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    address.size = sizeof(*v6);
    address.local = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) != 0;
    return address;
  }
  return InvalidArgument("address = ", Printable(options.address),
                         ": must be an IP address, such as 127.0.0.1, 0.0.0.0 or ::1");
}

Result<FileDescriptor> Listen(const HttpServerOptions& options, const ListenAddress& address) {
  FileDescriptor listener(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return ErrnoStatus("socket");
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const auto* where = reinterpret_cast<const sockaddr*>(&address.storage);
  if (::bind(listener.get(), where, address.size) != 0 || ::listen(listener.get(), 512) != 0) {
    return ErrnoStatus(Concat("listening on ", options.address, " port ", options.port));
  }
  return listener;
}

int64_t PortOf(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

void SetUpConnection(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A peer whose machine vanished answers no probe: then the socket hangs up.
  const int idle = 10;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
}

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// Of each message, not counted among those of all.
constexpr int64_t kFreeBytes = int64_t{64} << 10;

// Sends what a handler streams.
class SocketStream final : public HttpStream {
 public:
  SocketStream(int socket, Seconds patience, bool chunked)
      : socket_(socket), patience_(patience), chunked_(chunked) {}

  bool Send(std::string_view bytes) override {
    // An empty chunk would end the body.
    if (bytes.empty()) return ok_;
    return chunked_ ? SendNow(HttpChunk(bytes)) : SendNow(bytes);
  }
  // The head, or the end.
  bool SendNow(std::string_view text) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::duration_cast<TimePoint::duration>(patience_);
    ok_ = ok_ && SendAll(socket_, text, deadline);
    return ok_;
  }

 private:
  const int socket_;
  const Seconds patience_;
  const bool chunked_;
  bool ok_ = true;
};

std::string Refusal(int64_t status, const std::string& why) {
  return HttpResponseText(status, DetailText(why), false);
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                      Handler handler) {
  auto server = std::unique_ptr<HttpServer>(new HttpServer(options, std::move(handler)));
  PACE_ASSIGN_OR_RETURN(const ListenAddress address, ReadAddress(options));
  PACE_ASSIGN_OR_RETURN(server->listener_, Listen(options, address));
  server->local_ = address.local;
  server->stop_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!server->stop_.valid()) return ErrnoStatus("eventfd");
  server->hangups_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!server->hangups_.valid()) return ErrnoStatus("epoll");
  server->port_ = PortOf(server->listener_.get());
  PACE_ASSIGN_OR_RETURN(server->acceptor_, StartThread([raw = server.get()] { raw->AcceptAll(); }));
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
    pollfd waiting[] = {
        {listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}, {hangups_.get(), POLLIN, 0}};
    ::poll(waiting, std::size(waiting), 1000);
    if (waiting[1].revents != 0) return;
    if (waiting[2].revents != 0) AskWhoHungUp();
    JoinFinished();
    try {
      AcceptOne();
    } catch (const std::bad_alloc&) {
      // The connection that there was no memory for is closed.
    }
  }
}

void HttpServer::AcceptOne() {
  FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) {
    // Out of descriptors, most likely: those in use come back.
    if (errno == EMFILE || errno == ENFILE) ::poll(nullptr, 0, 50);
    return;
  }
  SetUpConnection(socket.get());
  const auto refuse = [](const FileDescriptor& refused, const char* why) {
    SendAll(refused.get(), Refusal(503, why), std::chrono::steady_clock::now());
  };
  MutexLock lock(mutex_);
  if (IsFull()) EndIdle();
  if (IsFull()) return refuse(socket, "too many connections");
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  Result<std::thread> thread = StartThread([this, &connection] {
    Serve(connection);
    ::shutdown(connection.socket.get(), SHUT_RDWR);
    Count(connection, 0);
    MutexLock done(mutex_);
    connection.done = true;
  });
  if (thread.ok()) {
    connection.thread = std::move(thread).value();
  } else {
    refuse(connection.socket, "no thread for another connection");
    connections_.pop_back();
  }
}

// A client that closed its side, or half of it, while its handler works is sent an
// interim response: a disconnected client answers with a reset, which cancels.
void HttpServer::AskWhoHungUp() {
  epoll_event events[64];
  const int count = ::epoll_wait(hangups_.get(), events, std::size(events), 0);
  MutexLock lock(mutex_);
  for (int index = 0; index < count; ++index) {
    // Entries go by JoinFinished alone, on this thread.
    const auto& connection = *static_cast<const Connection*>(events[index].data.ptr);
    if (!connection.handling) continue;
    const ssize_t sent = ::send(connection.socket.get(), kContinue.data(), kContinue.size(),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0 && sent < static_cast<ssize_t>(kContinue.size())) {
      ::shutdown(connection.socket.get(), SHUT_RDWR);  // half a line would spoil the answer
    }
  }
}

// A client with one answer may ask the next question before the thread that gave it
// has ended; those that end are bounded too, for readers that take their time.
bool HttpServer::IsFull() const {
  const int64_t ending = std::count_if(connections_.begin(), connections_.end(),
                                       [](const Connection& c) { return c.ending; });
  const auto all = static_cast<int64_t>(connections_.size());
  return all - ending >= options_.max_connections || all >= 2 * options_.max_connections;
}

void HttpServer::EndIdle() {
  const auto latest = std::chrono::steady_clock::now() -
                      std::chrono::duration_cast<TimePoint::duration>(options_.min_idle);
  Connection* longest = nullptr;
  for (Connection& connection : connections_) {
    if (connection.ending || connection.done || !connection.waiting_since) continue;
    if (*connection.waiting_since > latest) continue;
    if (longest == nullptr || *connection.waiting_since < *longest->waiting_since) {
      longest = &connection;
    }
  }
  if (longest == nullptr) return;
  longest->ending = true;
  ::shutdown(longest->socket.get(), SHUT_RDWR);
}

bool HttpServer::Count(Connection& connection, size_t bytes) {
  const int64_t counted = std::max<int64_t>(static_cast<int64_t>(bytes) - kFreeBytes, 0);
  MutexLock lock(mutex_);
  const int64_t others = counted_bytes_ - connection.counted_bytes;
  if (counted > 0 && others + counted > options_.max_total_bytes) return false;
  counted_bytes_ = others + counted;
  connection.counted_bytes = counted;
  return true;
}

void HttpServer::Serve(Connection& connection) {
  try {
    HttpReader reader(HttpReader::Kind::kRequest, options_.limits);
    while (ServeOne(connection, reader)) {
    }
  } catch (const std::bad_alloc&) {
    // This connection ends; what it held is free for the others.
  }
}

bool HttpServer::ReadMessage(Connection& connection, HttpReader& reader) {
  const int socket = connection.socket.get();
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<TimePoint::duration>(options_.patience);
  const auto refuse = [socket, deadline](int64_t status, const std::string& why) {
    SendAll(socket, Refusal(status, why), deadline);
    return false;
  };
  char buffer[65536];
  // What came with the request before may be a whole one.
  std::string_view bytes;
  while (true) {
    const Status status = reader.Feed(bytes);
    if (!status.ok()) return refuse(400, status.message());
    if (!Count(connection, reader.held_bytes())) {
      return refuse(503, "too many bytes of requests are under way: try again later");
    }
    if (reader.whole()) return true;
    if (reader.wants_continue()) {
      if (!SendAll(socket, kContinue, deadline)) return false;
      reader.Continued();
    }
    ssize_t count = -1;
    while (count < 0) {
      if (!WaitFor(socket, POLLIN, deadline)) {
        return reader.begun() ? refuse(408, "the request took too long") : false;
      }
      count = ::recv(socket, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    }
    if (count == 0) return false;
    bytes = std::string_view(buffer, static_cast<size_t>(count));
  }
}

HttpResponse HttpServer::Handle(Connection& connection, const HttpMessage& request) {
  const Status site = CheckSite(request, local_);
  if (!site.ok()) return {.status = 403, .body = DetailText(site.message())};
  const int socket = connection.socket.get();
  {
    MutexLock lock(mutex_);
    connection.handling = true;
    epoll_event event{};
    event.events = EPOLLRDHUP | EPOLLONESHOT;
    event.data.ptr = &connection;
    if (request.takes_interim) ::epoll_ctl(hangups_.get(), EPOLL_CTL_ADD, socket, &event);
  }
  // Errors and the end of both directions alone.
  HttpResponse answer = handler_(request, {.descriptor = socket, .events = 0});
  MutexLock lock(mutex_);
  connection.handling = false;
  if (request.takes_interim) ::epoll_ctl(hangups_.get(), EPOLL_CTL_DEL, socket, nullptr);
  return answer;
}

bool HttpServer::Stream(Connection& connection, const HttpResponse& response, bool chunked,
                        bool keep_alive) {
  SocketStream stream(connection.socket.get(), options_.patience, chunked);
  if (stream.SendNow(HttpStreamHead(response.status, response.content_type, chunked, keep_alive))) {
    response.stream(stream);
  }
  return (!chunked || stream.SendNow(HttpChunk(""))) && keep_alive;
}

bool HttpServer::ServeOne(Connection& connection, HttpReader& reader) {
  {
    MutexLock lock(mutex_);
    connection.waiting_since = std::chrono::steady_clock::now();
  }
  if (!ReadMessage(connection, reader)) return false;
  {
    MutexLock lock(mutex_);
    connection.waiting_since.reset();
  }
  std::string text;
  bool keep_alive = false;
  {
    HttpMessage request = reader.Take();
    keep_alive = request.keep_alive;
    const bool chunked = request.takes_interim;
    const HttpResponse answer = Handle(connection, request);
    if (answer.stream) {
      request = {};
      Count(connection, reader.held_bytes());
      return Stream(connection, answer, chunked, keep_alive && chunked);
    }
    text = HttpResponseText(answer.status, answer.body, keep_alive, answer.content_type);
  }
  if (!Count(connection, reader.held_bytes() + text.size())) {
    keep_alive = false;
    text = Refusal(503, "too many bytes of answers are under way: try again later");
  }
  {
    MutexLock lock(mutex_);
    connection.ending = !keep_alive;
  }
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<TimePoint::duration>(options_.patience);
  return SendAll(connection.socket.get(), text, deadline) && keep_alive;
}

}  // namespace pace
