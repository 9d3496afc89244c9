#include "text/jinja_strings.h"

#include <algorithm>

#include "text/characters.h"

namespace pace::jinja {
namespace {

template <typename Change>
std::string Map(const std::string& text, Change change) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    AppendCodePoint(out, change(point.code));
    at += point.num_bytes;
  }
  return out;
}

std::vector<std::string> SplitAtSpace(const std::string& text, int64_t max_splits) {
  std::vector<std::string> parts;
  std::string rest = Strip(text, std::nullopt, true, false);
  while (!rest.empty()) {
    size_t end = 0;
    while (end < rest.size() && !IsPythonSpace(ReadCodePoint(rest, end).code)) {
      end += ReadCodePoint(rest, end).num_bytes;
    }
    if (max_splits >= 0 && static_cast<int64_t>(parts.size()) == max_splits) {
      parts.push_back(Strip(rest, std::nullopt, false, true));
      break;
    }
    parts.push_back(rest.substr(0, end));
    rest = Strip(rest.substr(end), std::nullopt, true, false);
  }
  return parts;
}

}  // namespace

std::string Strip(const std::string& text, const std::optional<std::string>& characters, bool left,
                  bool right) {
  const auto goes = [&](size_t at) {
    const CodePoint point = ReadCodePoint(text, at);
    if (!characters.has_value()) return IsPythonSpace(point.code);
    for (size_t i = 0; i < characters->size();) {
      const CodePoint candidate = ReadCodePoint(*characters, i);
      if (candidate.code == point.code) return true;
      i += candidate.num_bytes;
    }
    return false;
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

std::string Upper(const std::string& text) {
  return Map(text, UpperOf);
}
std::string Lower(const std::string& text) {
  return Map(text, LowerOf);
}
std::string Capitalize(const std::string& text) {
  bool first = true;
  return Map(text, [&](uint32_t code) {
    const uint32_t out = first ? UpperOf(code) : LowerOf(code);
    first = false;
    return out;
  });
}
std::string Title(const std::string& text) {
  bool inside = false;
  return Map(text, [&](uint32_t code) {
    const uint32_t out = inside ? LowerOf(code) : UpperOf(code);
    inside = IsLetter(code);
    return out;
  });
}

}  // namespace pace::jinja
