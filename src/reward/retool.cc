#include "reward/retool.h"

#include <algorithm>

#include "reward/dapo.h"

namespace pace {

Verification VerifyRetool(std::string_view response, std::string_view answer, int64_t num_turns) {
  Verification seen = VerifyDapoStrict(response, answer);
  if (!seen.correct) {
    // In this order of operations, for the same bits as the recipe.
    const double bonus = (static_cast<double>(num_turns) - 2.0) / 2.0 * 0.1;
    seen.score = std::min(-0.6, seen.score + bonus);
  }
  if (!seen.extracted.has_value()) seen.extracted = "";
  return seen;
}

}  // namespace pace
