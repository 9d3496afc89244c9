#include "model/config_tokens.h"

#include <cstdint>

namespace pace {
namespace {

constexpr int64_t kMaxToken = (int64_t{1} << 31) - 1;

}  // namespace

bool ScanTokens(JsonScanner& scan, std::vector<TokenId>& out) {
  out.clear();
  if (scan.TakeNull()) return true;
  const auto one = [&] {
    int64_t id = 0;
    if (!scan.Integer(0, kMaxToken, "", id)) return false;
    out.push_back(static_cast<TokenId>(id));
    return true;
  };
  if (scan.NextKind() != JsonScanner::Kind::kArray) return one();
  scan.EnterArray();
  while (scan.NextItem()) {
    if (!one()) return false;
  }
  return scan.ok();
}

bool ScanToken(JsonScanner& scan, std::optional<TokenId>& out) {
  out.reset();
  if (scan.TakeNull()) return true;
  int64_t id = 0;
  if (!scan.Integer(-1, kMaxToken, "", id)) return false;
  if (id >= 0) out = static_cast<TokenId>(id);
  return true;
}

Result<std::vector<TokenId>> ParseEndTokens(std::string_view json, std::vector<TokenId> otherwise) {
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    const bool is_end = scan.key() == "eos_token_id";
    if (is_end && scan.TakeNull()) continue;
    is_end ? ScanTokens(scan, otherwise) : scan.Skip();
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  return otherwise;
}

}  // namespace pace
