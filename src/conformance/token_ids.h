// Token ids in case files.
#ifndef PACE_CONFORMANCE_TOKEN_IDS_H_
#define PACE_CONFORMANCE_TOKEN_IDS_H_

#include <string>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "text/value.h"

namespace pace {

// The list of ids in field `name` of a case. Ids too large for a token stay
// outside every vocabulary.
Result<std::vector<TokenId>> IdsField(const Value& object, std::string_view name,
                                      const std::string& where);

// "1 2 3", for failures.
std::string JoinIds(const std::vector<TokenId>& ids);

}  // namespace pace

#endif  // PACE_CONFORMANCE_TOKEN_IDS_H_
