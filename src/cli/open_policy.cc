#include "cli/open_policy.h"

#include <filesystem>

#include "core/printable.h"

namespace pace {

Result<Policy> OpenPolicy(const PolicyOptions& options) {
  Result<Policy> policy = LoadPolicy(options);
  std::error_code ignored;
  if (policy.ok() || std::filesystem::exists(options.model, ignored)) return policy;
  return NotFound("policy.model = ", Printable(options.model),
                  ": there is no such folder (scripts/get_smollm2 makes models/smollm2; tiny and "
                  "tiny-retool are inside pace)");
}

}  // namespace pace
