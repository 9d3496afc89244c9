// Base64 with padding, as files travel in JSON (RFC 4648).
// Thread-safety: functions of their arguments.
#ifndef PACE_HTTP_BASE64_H_
#define PACE_HTTP_BASE64_H_

#include <optional>
#include <string>
#include <string_view>

namespace pace {

std::string EncodeBase64(std::string_view bytes);
// None where a character, or the length, does not belong.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace pace

#endif  // PACE_HTTP_BASE64_H_
