#include "http/message.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "core/printable.h"

namespace pace {
namespace {

constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";

bool IsTokenByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kTokenMarks.find(c) != std::string_view::npos;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// All of the text, and nothing but digits.
bool ParseSize(std::string_view text, int base, size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

Status Malformed(std::string_view what) {
  return InvalidArgument("malformed HTTP: ", what);
}

std::string_view ReasonOf(int64_t status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 422:
      return "Unprocessable Content";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

// Without the port, and without the brackets of version 6.
std::string_view HostName(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

// A name that only this machine resolves.
bool IsPlainAddress(std::string_view name) {
  if (name == "localhost") return true;
  in6_addr ignored{};
  const std::string text(name);
  return ::inet_pton(AF_INET, text.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

// As in "Sun, 06 Nov 1994 08:49:37 GMT".
std::string DateText() {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  ::gmtime_r(&now, &time);
  std::array<char, 32> numbers{};
  const auto name = [](std::string_view names, int index) {
    return names.substr(3 * static_cast<size_t>(index), 3);
  };
  std::snprintf(numbers.data(), numbers.size(), "%04d %02d:%02d:%02d", time.tm_year + 1900,
                time.tm_hour, time.tm_min, time.tm_sec);
  return Concat(name(kDays, time.tm_wday), ", ", time.tm_mday < 10 ? "0" : "", time.tm_mday, " ",
                name(kMonths, time.tm_mon), " ", numbers.data(), " GMT");
}

std::string HeadText(int64_t status, std::string_view content_type, bool keep_alive) {
  return Concat("HTTP/1.1 ", status, " ", ReasonOf(status), "\r\nContent-Type: ", content_type,
                status == 401 ? "\r\nWWW-Authenticate: Bearer" : "", "\r\nDate: ", DateText(),
                "\r\nConnection: ", keep_alive ? "keep-alive" : "close", "\r\n");
}

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string_view HttpMessage::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

Status HttpReader::Feed(std::string_view bytes) {
  buffer_ += bytes;
  const Status status = Advance();
  buffer_.erase(0, std::exchange(at_, 0));
  return status;
}

Status HttpReader::End() {
  if (whole()) return Status::Ok();
  if (state_ == State::kUntilEnd) {
    state_ = State::kWhole;
    return Status::Ok();
  }
  return Malformed("the connection ended in the middle of a message");
}

Status HttpReader::Advance() {
  while (state_ != State::kWhole) {
    Result<bool> more = false;
    switch (state_) {
      case State::kHead:
        more = ReadHead();
        break;
      case State::kBody:
      case State::kUntilEnd:
        more = ReadBody();
        break;
      case State::kChunkSize:
        more = ReadChunkSize();
        break;
      case State::kChunk:
      case State::kChunkEnd:
        more = ReadChunk();
        break;
      case State::kTrailer:
        more = ReadTrailer();
        break;
      case State::kWhole:
        break;
    }
    if (!more.ok()) return more.status();
    if (!*more) return Status::Ok();
  }
  return Status::Ok();
}

bool HttpReader::IsBeyond(std::string_view end, size_t limit) const {
  const size_t found = Rest().find(end);
  if (found != std::string_view::npos) return found > limit;
  // What is there may close with the beginning of the end.
  return Rest().size() > limit + end.size() - 1;
}

std::optional<std::string> HttpReader::TakeLine() {
  const size_t end = Rest().find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  std::string line(Rest().substr(0, end));
  at_ += end + 2;
  return line;
}

Result<bool> HttpReader::ReadHead() {
  // Blank lines before a request are allowed, and nothing else.
  while (message_.headers.empty() && Rest().starts_with("\r\n")) at_ += 2;
  if (IsBeyond("\r\n\r\n", limits_.max_head_bytes)) return Malformed("the head is too long");
  if (Rest().find("\r\n\r\n") == std::string_view::npos) return false;
  PACE_RETURN_IF_ERROR(ReadStartLine(*TakeLine()));
  while (true) {
    const std::string line = *TakeLine();
    if (line.empty()) break;
    PACE_RETURN_IF_ERROR(ReadHeader(line));
  }
  PACE_RETURN_IF_ERROR(PlanBody());
  return true;
}

Status HttpReader::ReadStartLine(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t second = line.find(' ', first == std::string_view::npos ? first : first + 1);
  std::string_view version;
  if (kind_ == Kind::kRequest) {
    if (second == std::string_view::npos) return Malformed("the request line");
    message_.method = line.substr(0, first);
    message_.target = line.substr(first + 1, second - first - 1);
    version = line.substr(second + 1);
    const bool plain = std::all_of(message_.target.begin(), message_.target.end(),
                                   [](char c) { return c > ' ' && c < 0x7f; });
    if (!std::all_of(message_.method.begin(), message_.method.end(), IsTokenByte) || !plain ||
        message_.method.empty() || message_.target.empty()) {
      return Malformed("the request line");
    }
  } else {
    size_t status = 0;
    if (first == std::string_view::npos) return Malformed("the status line");
    const std::string_view code =
        line.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
    if (code.size() != 3 || !ParseSize(code, 10, status)) return Malformed("the status line");
    message_.status = static_cast<int64_t>(status);
    version = line.substr(0, first);
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return Malformed("the version must be HTTP/1.1");
  }
  message_.keep_alive = message_.takes_interim = version == "HTTP/1.1";
  return Status::Ok();
}

Status HttpReader::ReadHeader(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return Malformed("a header");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trim(line.substr(colon + 1));
  if (!std::all_of(name.begin(), name.end(), IsTokenByte)) return Malformed("a header's name");
  const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
  });
  if (!plain) return Malformed("a header's value");
  message_.headers.emplace_back(LowerCase(name), value);
  return Status::Ok();
}

Status HttpReader::PlanBody() {
  std::optional<size_t> length;
  bool chunked = false;
  for (const auto& [name, value] : message_.headers) {
    if (name == "content-length") {
      size_t given = 0;
      if (length.has_value() || !ParseSize(value, 10, given)) {
        return Malformed("Content-Length");
      }
      length = given;
    } else if (name == "transfer-encoding") {
      if (chunked || LowerCase(value) != "chunked") return Malformed("Transfer-Encoding");
      chunked = true;
    } else if (name == "connection") {
      const std::string lower = LowerCase(value);
      if (lower.find("close") != std::string::npos) message_.keep_alive = false;
      if (lower.find("keep-alive") != std::string::npos) message_.keep_alive = true;
    } else if (name == "expect") {
      wants_continue_ = LowerCase(value) == "100-continue";
    }
  }
  if (chunked && length.has_value()) return Malformed("a length and chunks");
  if (length.value_or(0) > limits_.max_body_bytes) return Malformed("the body is too long");
  left_ = length.value_or(0);
  // Interim answers and those that say there is nothing have no body, whatever they say.
  const int64_t status = message_.status;
  const bool bare = (status >= 100 && status < 200) || status == 204 || status == 304;
  if (kind_ == Kind::kResponse && bare) {
    state_ = State::kWhole;
    return Status::Ok();
  }
  const bool until_end = kind_ == Kind::kResponse && !length.has_value() && !chunked;
  state_ = chunked     ? State::kChunkSize
           : until_end ? State::kUntilEnd
           : left_ > 0 ? State::kBody
                       : State::kWhole;
  return Status::Ok();
}

void HttpReader::TakeBody() {
  const std::string_view part = Rest().substr(0, left_);
  message_.body += part;
  at_ += part.size();
  left_ -= part.size();
}

Result<bool> HttpReader::ReadBody() {
  if (state_ == State::kUntilEnd) {
    if (message_.body.size() + Rest().size() > limits_.max_body_bytes) {
      return Malformed("the body is too long");
    }
    left_ = Rest().size();
    TakeBody();
    return false;
  }
  TakeBody();
  if (left_ == 0) state_ = State::kWhole;
  return left_ == 0;
}

Result<bool> HttpReader::ReadChunkSize() {
  constexpr size_t kMaxLine = 256;
  if (IsBeyond("\r\n", kMaxLine)) return Malformed("the size of a chunk");
  const std::optional<std::string> line = TakeLine();
  if (!line.has_value()) return false;
  // After a semicolon are extensions, which mean nothing to us.
  if (!ParseSize(Trim(std::string_view(*line).substr(0, line->find(';'))), 16, left_)) {
    return Malformed("the size of a chunk");
  }
  if (left_ > limits_.max_body_bytes - message_.body.size()) {
    return Malformed("the body is too long");
  }
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return true;
}

Result<bool> HttpReader::ReadChunk() {
  TakeBody();
  state_ = left_ > 0 ? State::kChunk : State::kChunkEnd;
  if (left_ > 0 || Rest().size() < 2) return false;
  if (!Rest().starts_with("\r\n")) return Malformed("the end of a chunk");
  at_ += 2;
  state_ = State::kChunkSize;
  return true;
}

Result<bool> HttpReader::ReadTrailer() {
  if (IsBeyond("\r\n", limits_.max_head_bytes - left_)) {
    return Malformed("the trailer is too long");
  }
  const std::optional<std::string> line = TakeLine();
  if (!line.has_value()) return false;
  left_ += line->size();
  if (line->empty()) state_ = State::kWhole;
  return true;
}

HttpMessage HttpReader::Take() {
  PACE_CHECK(whole(), "a message that is not whole was asked for");
  state_ = State::kHead;
  left_ = 0;
  wants_continue_ = false;
  return std::exchange(message_, {});
}

Status CheckSite(const HttpMessage& request, bool local) {
  const std::string_view host = request.Header("host");
  if (local && !host.empty() && !IsPlainAddress(HostName(host))) {
    return InvalidArgument("Host '", Printable(host),
                           "': this server answers to an address or to localhost");
  }
  for (const auto& [name, value] : request.headers) {
    if (name != "origin") continue;
    const bool own = value == Concat("http://", host) && IsPlainAddress(HostName(host));
    if (!own) {
      return InvalidArgument("Origin '", Printable(value),
                             "': this server does not answer web pages");
    }
  }
  return Status::Ok();
}

std::string HttpResponseText(int64_t status, std::string_view body, bool keep_alive,
                             std::string_view content_type) {
  return Concat(HeadText(status, content_type, keep_alive), "Content-Length: ", body.size(),
                "\r\n\r\n", body);
}

std::string HttpStreamHead(int64_t status, std::string_view content_type, bool chunked,
                           bool keep_alive) {
  return Concat(HeadText(status, content_type, keep_alive),
                chunked ? "Transfer-Encoding: chunked\r\n" : "", "\r\n");
}

std::string HttpChunk(std::string_view bytes) {
  char size[20];
  const auto end = std::to_chars(size, size + sizeof(size), bytes.size(), 16).ptr;
  return Concat(std::string_view(size, static_cast<size_t>(end - size)), "\r\n", bytes, "\r\n");
}

std::string HttpRequestText(std::string_view method, std::string_view host, std::string_view target,
                            std::string_view body) {
  return Concat(method, " ", target, " HTTP/1.1\r\nHost: ", host,
                "\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
                "\r\nConnection: close\r\n\r\n", body);
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - at);
    uint32_t word = 0;
    for (size_t index = 0; index < 3; ++index) {
      const auto byte = index < have ? static_cast<unsigned char>(bytes[at + index]) : 0;
      word = word << 8 | static_cast<uint32_t>(byte);
    }
    for (size_t index = 0; index < 4; ++index) {
      text += index <= have ? kAlphabet[word >> (18 - 6 * index) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t word = 0;
  int num_bits = 0;
  for (const char c : text) {
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    word = word << 6 | static_cast<uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(word >> num_bits & 255);
  }
  // What is left over must be zero, so that every text has one meaning.
  if ((word & ((1U << num_bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace pace
