#include "engines/http_calls.h"

#include <curl/curl.h>

#include <map>
#include <mutex>
#include <utility>

#include "core/check.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr size_t kMaxAnswerBytes = size_t{256} << 20;
constexpr long kConnectMs = 5000;

void InitialiseOnce() {
  static std::once_flag flag;
  std::call_once(flag, [] {
    PACE_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl cannot start");
  });
}

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

void AppendHeader(HeaderList& list, const std::string& header) {
  curl_slist* const longer = curl_slist_append(list.get(), header.c_str());
  PACE_CHECK(longer != nullptr, "no memory for a header");
  list.release();
  list.reset(longer);
}

// One call in flight.
struct Exchange {
  int64_t call = 0;
  std::unique_ptr<CURL, EasyDeleter> easy;
  std::string body;
  char error[CURL_ERROR_SIZE] = {};
};

size_t Receive(const char* bytes, size_t size, size_t count, void* into) {
  std::string& body = static_cast<Exchange*>(into)->body;
  if (body.size() + size * count > kMaxAnswerBytes) return 0;  // ends the call
  body.append(bytes, size * count);
  return size * count;
}

// Of the header Date.
std::optional<int64_t> ClockOf(CURL* easy) {
  curl_header* header = nullptr;
  if (curl_easy_header(easy, "Date", 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return {};
  const time_t seconds = curl_getdate(header->value, nullptr);
  if (seconds < 0) return {};
  return static_cast<int64_t>(seconds);
}

}  // namespace

Status CheckServerUrl(const std::string& url) {
  const bool scheme = url.starts_with("http://") || url.starts_with("https://");
  const size_t host = url.find("://") + 3;
  if (scheme && url.size() > host && url[host] != '/' && url.find_first_of(" \t\n\"") == url.npos) {
    return Status::Ok();
  }
  return InvalidArgument(Printable(url), ": must be http://HOST:PORT or https://HOST:PORT");
}

struct HttpCalls::State {
  explicit State(ServerAddress given) : server(std::move(given)), multi(curl_multi_init()) {
    PACE_CHECK(multi != nullptr, "libcurl cannot start");
    while (server.url.ends_with('/')) server.url.pop_back();
    AppendHeader(headers, "Content-Type: application/json");
    AppendHeader(headers, "Expect:");
    if (!server.token.empty()) AppendHeader(headers, "Authorization: Bearer " + server.token);
  }
  ~State() {
    for (const auto& [call, exchange] : exchanges) {
      curl_multi_remove_handle(multi, exchange->easy.get());
    }
    exchanges.clear();
    curl_multi_cleanup(multi);
  }

  ServerAddress server;
  CURLM* const multi;
  HeaderList headers;
  std::map<int64_t, std::unique_ptr<Exchange>> exchanges;
  std::vector<Done> failed;  // could not begin
  std::string local_address;
};

HttpCalls::HttpCalls(const ServerAddress& server) {
  InitialiseOnce();
  state_ = std::make_unique<State>(server);
}

HttpCalls::~HttpCalls() = default;

void HttpCalls::Add(int64_t call, const HttpCall& http, Seconds deadline) {
  PACE_CHECK(!state_->exchanges.contains(call), "call ", call, " is in flight");
  auto exchange = std::make_unique<Exchange>();
  exchange->call = call;
  exchange->easy.reset(curl_easy_init());
  CURL* const easy = exchange->easy.get();
  PACE_CHECK(easy != nullptr, "libcurl cannot make a call");
  const std::string url = state_->server.url + http.target;
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(deadline.count() * 1000));
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, state_->headers.get());
  if (!state_->server.ca_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, state_->server.ca_file.c_str());
  }
  if (http.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(http.body.size()));
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, http.body.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Receive);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange.get());
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange.get());
  const CURLMcode added = curl_multi_add_handle(state_->multi, easy);
  if (added != CURLM_OK) {
    state_->failed.push_back({call, Unavailable(http.target, ": ", curl_multi_strerror(added))});
    return;
  }
  state_->exchanges.emplace(call, std::move(exchange));
}

void HttpCalls::Remove(int64_t call) {
  const auto found = state_->exchanges.find(call);
  if (found == state_->exchanges.end()) return;
  curl_multi_remove_handle(state_->multi, found->second->easy.get());
  state_->exchanges.erase(found);
}

std::vector<HttpCalls::Done> HttpCalls::Poll(Seconds patience) {
  int num_running = 0;
  curl_multi_perform(state_->multi, &num_running);
  std::vector<Done> done = std::exchange(state_->failed, {});
  const auto collect = [&] {
    int num_left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(state_->multi, &num_left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Exchange* exchange = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
      const CURLcode code = message->data.result;
      if (code == CURLE_OK) {
        long status = 0;
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        const char* address = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_LOCAL_IP, &address);
        if (address != nullptr) state_->local_address = address;
        done.push_back({exchange->call, ServerAnswer{status, std::move(exchange->body),
                                                     ClockOf(message->easy_handle)}});
      } else {
        const std::string reason =
            exchange->error[0] != '\0' ? exchange->error : curl_easy_strerror(code);
        done.push_back({exchange->call, Unavailable(Printable(reason))});
      }
      Remove(exchange->call);
    }
  };
  collect();
  if (!done.empty()) return done;
  curl_multi_poll(state_->multi, nullptr, 0, static_cast<int>(patience.count() * 1000), nullptr);
  curl_multi_perform(state_->multi, &num_running);
  collect();
  return done;
}

const std::string& HttpCalls::local_address() const {
  return state_->local_address;
}

void HttpCalls::Wake() {
  curl_multi_wakeup(state_->multi);
}

}  // namespace pace
