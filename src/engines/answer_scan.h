// Reading servers' JSON: what both dialects need. Include it in sources only.
//
// Unknown keys are skipped: servers add keys between releases.
// Thread-safety: pure functions.
#ifndef PACE_ENGINES_ANSWER_SCAN_H_
#define PACE_ENGINES_ANSWER_SCAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_scanner.h"
#include "core/token_id.h"
#include "engines/dialect.h"

namespace pace::answer {

inline constexpr int64_t kMaxToken = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMaxCount = int64_t{1} << 40;
// Rounding may lift the log-probability of a certain token above 0 by a little; servers write
// the smallest one as -9999.
inline constexpr double kMinLogprob = -10000;
inline constexpr double kMaxLogprob = 1e-3;

// For each key of the object that is next: `read(key)` reads its value, or returns false, and
// then it is passed over.
template <typename Read>
bool ForKeys(JsonScanner& scan, Read read) {
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string key(scan.key());
    if (!read(key)) scan.Skip();
  }
  return scan.ok();
}

template <typename Read>
bool ForItems(JsonScanner& scan, Read read) {
  scan.EnterArray();
  while (scan.NextItem()) read();
  return scan.ok();
}

inline bool Token(JsonScanner& scan, TokenId& out) {
  int64_t id = 0;
  if (!scan.Integer(0, kMaxToken, "", id)) return false;
  out = static_cast<TokenId>(id);
  return true;
}

inline bool Tokens(JsonScanner& scan, std::vector<TokenId>& out) {
  out.clear();
  return ForItems(scan, [&] {
    TokenId id = 0;
    if (Token(scan, id)) out.push_back(id);
  });
}

inline bool Logprob(JsonScanner& scan, float& out) {
  double value = 0;
  if (!scan.Real(kMinLogprob, kMaxLogprob, "a log-probability", value)) return false;
  out = static_cast<float>(value);
  return true;
}

// [{"version": "a", "start": 0, "end": 12}, ...], or null.
inline bool Spans(JsonScanner& scan, std::vector<VersionSpan>& out) {
  out.clear();
  if (scan.TakeNull()) return true;
  return ForItems(scan, [&] {
    VersionSpan& span = out.emplace_back();
    ForKeys(scan, [&](const std::string& key) {
      if (key == "version") return scan.Text(span.label);
      if (key == "start") return scan.Integer(0, kMaxCount, "", span.start);
      if (key == "end") return scan.Integer(0, kMaxCount, "", span.end);
      return false;
    });
  });
}

// One text value of an object, "" where it is not there.
Result<std::string> TextOf(std::string_view body, std::string_view wanted);
// A server's error: "message", "error", "detail", or the first line of what it sent.
std::string ErrorOf(std::string_view body);
// The sum of the samples of a counter in Prometheus' text format; 0 where there is none. A sample
// that is no finite number of 0 or more counts as 0.
double CounterOf(std::string_view text, std::string_view name);
// Of the histogram or summary of that name.
FirstTokens FirstTokensOf(std::string_view text, std::string_view name);

}  // namespace pace::answer

#endif  // PACE_ENGINES_ANSWER_SCAN_H_
