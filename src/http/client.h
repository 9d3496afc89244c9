// One HTTP request and its response, over a new connection.
#ifndef PACE_HTTP_CLIENT_H_
#define PACE_HTTP_CLIENT_H_

#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/file_descriptor.h"
#include "core/status.h"
#include "http/message.h"

namespace pace {

struct HttpUrl {
  std::string host;  // of an IPv6 address without its brackets
  std::string port = "80";
  std::string path;  // "" or "/folder", without a slash at its end
};
// "http://host:port/folder", "http://[::1]:port"; nothing but http.
Result<HttpUrl> ReadHttpUrl(std::string_view text);

struct HttpCall {
  std::string method = "POST";
  std::string target{};  // appended to the URL's path
  std::string body{};
};

// The response, whatever its status. An error: none came before the timeout, or the caller
// cancelled (the message then says "cancelled").
// Thread-safety: may be called from any thread.
Result<HttpMessage> CallHttp(const HttpUrl& url, const HttpCall& call, Seconds timeout,
                             const Cancellation& cancellation);

}  // namespace pace

#endif  // PACE_HTTP_CLIENT_H_
