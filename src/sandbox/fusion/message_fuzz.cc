// Any bytes, in any pieces: no crash, limits hold, and the pieces do not matter.
#include <cstdint>
#include <string_view>

#include "http/message.h"
#include "sandbox/fusion/message.h"
#include "sandbox/program_control.h"

namespace {

using pace::HttpReader;

constexpr pace::HttpLimits kLimits{.max_head_bytes = 512, .max_body_bytes = 512};

void Read(HttpReader::Kind kind, std::string_view bytes) {
  HttpReader at_once(kind, kLimits);
  HttpReader in_pieces(kind, kLimits);
  const bool ok = at_once.Feed(bytes).ok();
  bool pieces_ok = true;
  for (size_t at = 0; at < bytes.size() && pieces_ok && !in_pieces.whole(); ++at) {
    pieces_ok = in_pieces.Feed(bytes.substr(at, 1)).ok();
  }
  if (ok != pieces_ok || (ok && at_once.whole() != in_pieces.whole())) __builtin_trap();
  if (!ok || !at_once.whole()) return;
  const pace::HttpMessage a = at_once.Take();
  const pace::HttpMessage b = in_pieces.Take();
  if (a.body != b.body || a.headers != b.headers) __builtin_trap();
  if (a.body.size() > kLimits.max_body_bytes) __builtin_trap();
  (void)pace::CheckSite(a, true).ok();
  (void)at_once.Feed("").ok();  // what came after the message
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Read(HttpReader::Kind::kRequest, bytes);
  Read(HttpReader::Kind::kResponse, bytes);
  if (!pace::ReadFusionRequest(bytes).ok()) (void)pace::ReadFusionResponse(bytes).ok();
  (void)pace::ReadProgramEnd(bytes).ok();
  return 0;
}
