#include "text/jinja/strings.h"

#include <algorithm>

#include "text/characters.h"

namespace pace::jinja {
namespace {

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size() && IsPythonSpace(ReadCodePoint(text, at).code)) {
    at += ReadCodePoint(text, at).num_bytes;
  }
  return at;
}

std::vector<std::string> SplitAtSpace(const std::string& text, int64_t max_splits) {
  std::vector<std::string> parts;
  for (size_t at = SkipSpace(text, 0); at < text.size();) {
    if (max_splits >= 0 && static_cast<int64_t>(parts.size()) == max_splits) {
      parts.push_back(Strip(text.substr(at), std::nullopt, false, true));
      break;
    }
    size_t end = at;
    while (end < text.size() && !IsPythonSpace(ReadCodePoint(text, end).code)) {
      end += ReadCodePoint(text, end).num_bytes;
    }
    parts.push_back(text.substr(at, end - at));
    at = SkipSpace(text, end);
  }
  return parts;
}

}  // namespace

std::string Strip(const std::string& text, const std::optional<std::string>& characters, bool left,
                  bool right) {
  std::vector<uint32_t> given;
  for (size_t i = 0; characters.has_value() && i < characters->size();) {
    const CodePoint point = ReadCodePoint(*characters, i);
    given.push_back(point.code);
    i += point.num_bytes;
  }
  std::sort(given.begin(), given.end());
  const auto goes = [&](size_t at) {
    const uint32_t code = ReadCodePoint(text, at).code;
    return characters.has_value() ? std::binary_search(given.begin(), given.end(), code)
                                  : IsPythonSpace(code);
  };
  size_t begin = 0;
  while (left && begin < text.size() && goes(begin)) begin += ReadCodePoint(text, begin).num_bytes;
  size_t end = text.size();
  while (right && end > begin) {
    const size_t last = BeginOfLastCharacter(std::string_view(text).substr(0, end));
    if (!goes(last)) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string> SplitText(const std::string& text,
                                   const std::optional<std::string>& separator, int64_t max_splits,
                                   bool from_right) {
  if (!separator.has_value()) return SplitAtSpace(text, max_splits);
  std::vector<std::string> parts;
  size_t begin = 0;
  size_t end = text.size();
  while (max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits) {
    if (from_right) {
      if (end < separator->size()) break;
      const size_t found = text.rfind(*separator, end - separator->size());
      if (found == std::string::npos) break;
      parts.push_back(text.substr(found + separator->size(), end - found - separator->size()));
      end = found;
    } else {
      const size_t found = text.find(*separator, begin);
      if (found == std::string::npos) break;
      parts.push_back(text.substr(begin, found - begin));
      begin = found + separator->size();
    }
  }
  parts.push_back(text.substr(begin, end - begin));
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    const uint32_t c = point.code;
    size_t size = point.num_bytes;
    const bool ends = (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (c == '\r' && at + 1 < text.size() && text[at + 1] == '\n') ++size;
    if (ends) {
      lines.push_back(text.substr(begin, at - begin));
      begin = at + size;
    }
    at += size;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string ReplaceAll(const std::string& text, const std::string& from, const std::string& to,
                       int64_t max_count) {
  std::string out;
  size_t done = 0;
  for (int64_t count = 0; max_count < 0 || count < max_count; ++count) {
    const size_t found = text.find(from, done);
    if (found == std::string::npos) break;
    if (from.empty()) {
      // Before every character, and at the end.
      out += to;
      if (done >= text.size()) return out;
      const size_t size = ReadCodePoint(text, done).num_bytes;
      out += text.substr(done, size);
      done += size;
    } else {
      out += text.substr(done, found - done) + to;
      done = found + from.size();
    }
  }
  return out + text.substr(std::min(done, text.size()));
}

}  // namespace pace::jinja
