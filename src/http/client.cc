#include "http/client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>

#include "core/file_descriptor.h"
#include "core/printable.h"

namespace pace {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

// One call's socket with its deadline.
class Exchange {
 public:
  Exchange(std::string where, Deadline deadline, const Cancellation& cancellation)
      : where_(std::move(where)), deadline_(deadline), cancellation_(cancellation) {}

  Status Connect(const HttpUrl& url) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found);
    if (error != 0) return Unavailable(where_, ": ", ::gai_strerror(error));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    Status status = Unavailable(where_, ": has no address");
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
      status = ConnectTo(*at);
      if (status.ok()) break;
    }
    return status;
  }

  Status Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count > 0) {
        text.remove_prefix(static_cast<size_t>(count));
      } else if (errno == EAGAIN) {
        PACE_RETURN_IF_ERROR(Wait(POLLOUT));
      } else if (errno != EINTR) {
        return ErrnoStatus(where_);
      }
    }
    return Status::Ok();
  }

  Result<HttpMessage> Receive() {
    HttpReader reader(HttpReader::Kind::kResponse, {});
    while (true) {
      PACE_RETURN_IF_ERROR(ReceiveInto(reader));
      HttpMessage answer = reader.Take();
      // After "100 Continue" comes the answer proper.
      if (answer.status != 100) return answer;
    }
  }

 private:
  Status ReceiveInto(HttpReader& reader) {
    char buffer[65536];
    // What came with the message before may be whole already.
    PACE_RETURN_IF_ERROR(reader.Feed("").At(where_));
    while (!reader.whole()) {
      PACE_RETURN_IF_ERROR(Wait(POLLIN));
      const ssize_t count = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count < 0) return ErrnoStatus(where_);
      const Status status = count == 0
                                ? reader.End()
                                : reader.Feed(std::string_view(buffer, static_cast<size_t>(count)));
      if (!status.ok()) return status.At(where_);
    }
    return Status::Ok();
  }

  Status ConnectTo(const addrinfo& address) {
    socket_ =
        FileDescriptor(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid()) return ErrnoStatus(where_);
    if (::connect(socket_.get(), address.ai_addr, address.ai_addrlen) == 0) return Status::Ok();
    if (errno != EINPROGRESS) return ErrnoStatus(where_);
    PACE_RETURN_IF_ERROR(Wait(POLLOUT));
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? Status::Ok() : ErrnoStatus(where_, error);
  }

  Status Wait(int16_t events) {
    while (true) {
      pollfd waiting[] = {{socket_.get(), events, 0},
                          {cancellation_.descriptor, cancellation_.events, 0}};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline_ - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Unavailable(where_, ": no answer in time");
      ::poll(waiting, std::size(waiting),
             static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
      if (waiting[1].revents != 0) return Unavailable(where_, ": cancelled");
      if (waiting[0].revents != 0) return Status::Ok();
    }
  }

  const std::string where_;
  const Deadline deadline_;
  const Cancellation& cancellation_;
  FileDescriptor socket_;
};

}  // namespace

Result<HttpUrl> ReadHttpUrl(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  const std::string shown = Printable(text);
  if (!text.starts_with(kScheme)) {
    return InvalidArgument("URL '", shown, "': must begin with http://");
  }
  text.remove_prefix(kScheme.size());
  HttpUrl url;
  const size_t slash = text.find('/');
  std::string_view host = text.substr(0, slash);
  if (slash != std::string_view::npos) url.path = text.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  // An address of version 6 stands in brackets, as its colons are not the port's.
  const bool bracketed = host.starts_with('[');
  const size_t closing = bracketed ? host.find(']') : 0;
  if (closing == std::string_view::npos) {
    return InvalidArgument("URL '", shown, "': '[' without ']'");
  }
  const size_t colon = host.find(':', closing);
  if (colon != std::string_view::npos) {
    url.port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (bracketed) {
    if (!host.ends_with(']')) {
      return InvalidArgument("URL '", shown, "': must be http://[ADDRESS][:PORT][/PATH]");
    }
    host = host.substr(1, host.size() - 2);
  }
  url.host = host;
  const bool version_6 = host.find(':') != std::string_view::npos;
  const bool digits =
      !url.port.empty() && url.port.size() <= 5 &&
      std::all_of(url.port.begin(), url.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (url.host.empty() || bracketed != version_6 || !digits ||
      !std::all_of(url.host.begin(), url.host.end(), plain) ||
      !std::all_of(url.path.begin(), url.path.end(), plain)) {
    return InvalidArgument(
        "URL '", shown, "': must be http://HOST[:PORT][/PATH], with an IPv6 address in brackets");
  }
  return url;
}

Result<HttpMessage> CallHttp(const HttpUrl& url, const HttpCall& call, Seconds timeout,
                             const Cancellation& cancellation) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<Deadline::duration>(timeout);
  const bool version_6 = url.host.find(':') != std::string::npos;
  const std::string host =
      Concat(version_6 ? "[" : "", url.host, version_6 ? "]" : "", ":", url.port);
  Exchange exchange(Concat("http://", host, url.path, call.target), deadline, cancellation);
  PACE_RETURN_IF_ERROR(exchange.Connect(url));
  PACE_RETURN_IF_ERROR(
      exchange.Send(HttpRequestText(call.method, host, url.path + call.target, call.body)));
  return exchange.Receive();
}

}  // namespace pace
