// Fuzzes everything behind `equiv`: search, lexer, parser, comparison.
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "reward/equivalence.h"
#include "reward/equivalence/answer_search.h"
#include "reward/equivalence/math_comparer.h"
#include "reward/equivalence/math_parser.h"

namespace pace {
namespace {

// The first byte says where the answer ends and the response begins.
void Fuzz(std::string_view text) {
  if (text.empty()) return;
  const size_t length = static_cast<unsigned char>(text[0]);
  text.remove_prefix(1);
  const std::string_view answer = text.substr(0, length);
  const std::string_view response = text.substr(answer.size());
  const Verification seen = VerifyEquivalence(response, answer);
  PACE_CHECK(seen.score == (seen.correct ? 1 : 0), "score and verdict must agree");
  const equiv::MathNodePtr one = equiv::ParseMath(answer);
  if (one == nullptr) return;
  PACE_CHECK(equiv::StructureOf(*one).empty() || equiv::MathComparer().IsSame(one, one),
             "an answer must be the same as itself");
  const equiv::MathNodePtr other = equiv::ParseMath(response);
  if (other != nullptr) equiv::MathComparer().IsSame(one, other);
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
