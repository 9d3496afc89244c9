// Reading token ids from config.json and generation_config.json.
// Thread-safety: pure but for the scanner.
#ifndef PACE_MODEL_CONFIG_TOKENS_H_
#define PACE_MODEL_CONFIG_TOKENS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "core/json_scanner.h"
#include "core/status.h"
#include "core/token_id.h"

namespace pace {

// A token id, a list of them, or null: none.
bool ScanTokens(JsonScanner& scan, std::vector<TokenId>& out);

// A token id, or null: none. -1 is how old files say null.
bool ScanToken(JsonScanner& scan, std::optional<TokenId>& out);

// eos_token_id of a generation_config.json; `otherwise` if it is null or absent.
Result<std::vector<TokenId>> ParseEndTokens(std::string_view json, std::vector<TokenId> otherwise);

}  // namespace pace

#endif  // PACE_MODEL_CONFIG_TOKENS_H_
