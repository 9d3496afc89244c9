// HTTP/1.1 messages, read strictly and within limits.
//
// HttpReader parses bytes as they arrive from a peer that may be slow, wrong or hostile, and
// reports when a message is complete. It supports Content-Length and chunked bodies; both at
// once, folded headers and anything ambiguous are refused.
//
// Thread-safety: none.
#ifndef PACE_HTTP_MESSAGE_H_
#define PACE_HTTP_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace pace {

struct HttpLimits {
  size_t max_head_bytes = size_t{16} << 10;
  size_t max_body_bytes = size_t{64} << 20;
};

struct HttpMessage {
  // Of a request.
  std::string method{};
  std::string target{};
  // Of a response.
  int64_t status = 0;
  // Names in lower case.
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
  // Whether the peer wants the connection to stay.
  bool keep_alive = true;
  // HTTP/1.1, whose clients accept "100 Continue" responses.
  bool takes_interim = true;

  // Empty where there is none.
  std::string_view Header(std::string_view name) const;
};

class HttpReader {
 public:
  enum class Kind { kRequest, kResponse };
  HttpReader(Kind kind, const HttpLimits& limits) : kind_(kind), limits_(limits) {}

  // Parses more bytes of the stream. After an error the stream cannot be used.
  Status Feed(std::string_view bytes);
  // The stream has ended; a response without a length ends with it.
  Status End();

  bool whole() const { return state_ == State::kWhole; }
  // The head is whole, and the peer waits for a "100 Continue".
  bool wants_continue() const { return wants_continue_ && state_ != State::kHead; }
  void Continued() { wants_continue_ = false; }
  // Bytes of a message have come, but not all.
  bool begun() const { return !whole() && (state_ != State::kHead || !buffer_.empty()); }

  // What the message and the bytes that came after it take.
  size_t held_bytes() const { return buffer_.size() + message_.body.size(); }

  // The message. Bytes that came after it are read by the next Feed, which may be given
  // none: the next message may be whole already. REQUIRES: whole()
  HttpMessage Take();

 private:
  enum class State { kHead, kBody, kUntilEnd, kChunkSize, kChunk, kChunkEnd, kTrailer, kWhole };

  Status Advance();
  // Each consumes what it can; false when it needs more bytes.
  Result<bool> ReadHead();
  Result<bool> ReadBody();
  Result<bool> ReadChunkSize();
  Result<bool> ReadChunk();
  Result<bool> ReadTrailer();
  Status ReadStartLine(std::string_view line);
  Status ReadHeader(std::string_view line);
  Status PlanBody();
  std::string_view Rest() const { return std::string_view(buffer_).substr(at_); }
  // Up to left_ bytes of the body.
  void TakeBody();
  // The next line without its end, or none yet.
  // Whether more than `limit` bytes come before `end`; the same however the bytes arrive.
  bool IsBeyond(std::string_view end, size_t limit) const;
  std::optional<std::string> TakeLine();

  const Kind kind_;
  const HttpLimits limits_;
  State state_ = State::kHead;
  std::string buffer_;
  size_t at_ = 0;  // what of the buffer is consumed
  HttpMessage message_;
  size_t left_ = 0;  // bytes of the body, or of its chunk
  bool wants_continue_ = false;
};

// Ok unless a web page seems to have sent the request: its Origin must be the server's
// own address and, so that no name can be made to lead here, an address or localhost, as
// must its Host where the server listens to this machine alone (`local`).
Status CheckSite(const HttpMessage& request, bool local);

// A whole message as it is sent.
std::string HttpResponseText(int64_t status, std::string_view body, bool keep_alive,
                             std::string_view content_type = "application/json");
std::string HttpRequestText(std::string_view method, std::string_view host, std::string_view target,
                            std::string_view body);

// The head of a response of unknown length: its body follows in chunks or, for a client of
// HTTP/1.0, ends with the connection.
std::string HttpStreamHead(int64_t status, std::string_view content_type, bool chunked,
                           bool keep_alive);
// A part of a chunked body. No bytes: the end of it.
std::string HttpChunk(std::string_view bytes);

// Base64 with padding, as JSON bodies carry files (RFC 4648).
std::string EncodeBase64(std::string_view bytes);
// None where a character, or the length, does not belong.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace pace

#endif  // PACE_HTTP_MESSAGE_H_
