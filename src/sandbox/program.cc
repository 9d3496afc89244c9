#include "sandbox/program.h"

#include "core/concat.h"
#include "core/printable.h"
#include "core/utf8.h"

namespace pace {
namespace {

bool CanBeginCharacter(unsigned char byte) {
  return byte < 0x80 || (byte >= 0xC2 && byte <= 0xF4);
}

struct Defect {
  size_t begin = 0;
  size_t end = 0;
  bool truncated = false;
};

// The first; an empty one after the end where there is none.
Defect FindDefect(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = ReadCodePoint(bytes, at);
    if (!point.well_formed) {
      const bool truncated = at + point.num_bytes == bytes.size() &&
                             CanBeginCharacter(static_cast<unsigned char>(bytes[at]));
      return {at, at + point.num_bytes, truncated};
    }
    at += point.num_bytes;
  }
  return {bytes.size(), bytes.size(), false};
}

std::string Hex(unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

}  // namespace

Status CheckProgramPath(const std::string& path) {
  const auto broken = [&path](const char* rule) {
    return InvalidArgument("file '", Printable(path), "': ", rule);
  };
  if (path.empty()) return broken("a path must not be empty");
  if (path.front() == '/') return broken("must be relative to the working folder");
  if (path.find('\0') != std::string::npos) return broken("must not hold a zero byte");
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = path.find('/', begin);
    if (end == std::string::npos) end = path.size();
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return broken("must be plain: no '.', no '..', no empty part");
    }
    begin = end + 1;
  }
  return Status::Ok();
}

std::string OutputText(std::string_view bytes, bool cut) {
  Defect defect = FindDefect(bytes);
  if (cut && defect.truncated) return std::string(bytes.substr(0, defect.begin));
  if (defect.begin == bytes.size()) return std::string(bytes);
  const auto first = static_cast<unsigned char>(bytes[defect.begin]);
  const char* reason = defect.truncated            ? "unexpected end of data"
                       : !CanBeginCharacter(first) ? "invalid start byte"
                                                   : "invalid continuation byte";
  const std::string where = defect.end - defect.begin == 1
                                ? Concat("byte ", Hex(first), " in position ", defect.begin)
                                : Concat("bytes in position ", defect.begin, "-", defect.end - 1);
  return Concat("[DecodeError] 'utf-8' codec can't decode ", where, ": ", reason);
}

}  // namespace pace
