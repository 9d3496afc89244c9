#include "conformance/token_ids.h"

#include <limits>

#include "conformance/case_file.h"

namespace pace {

Result<std::vector<TokenId>> IdsField(const Value& object, std::string_view name,
                                      const std::string& where) {
  PACE_ASSIGN_OR_RETURN(const ValueList list, ListField(object, name, where));
  std::vector<TokenId> ids;
  for (const Value& id : list) {
    if (!id.is_integer()) return InvalidArgument(where, ": ", name, ": must hold integers");
    constexpr int64_t kMax = std::numeric_limits<TokenId>::max();
    const bool fits = id.integer() >= 0 && id.integer() <= kMax;
    ids.push_back(static_cast<TokenId>(fits ? id.integer() : kMax));
  }
  return ids;
}

std::string JoinIds(const std::vector<TokenId>& ids) {
  std::string out;
  for (const TokenId id : ids) out += Concat(out.empty() ? "" : " ", id);
  return out;
}

}  // namespace pace
