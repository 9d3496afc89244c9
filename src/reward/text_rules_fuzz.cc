// Fuzzes the verifiers that compare text: dapo, math, gsm8k and their kin.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "reward/dapo.h"
#include "reward/math_dataset.h"
#include "reward/verifier.h"

namespace pace {
namespace {

void Fuzz(std::string_view text) {
  if (text.empty()) return;
  const size_t length = static_cast<unsigned char>(text[0]);
  text.remove_prefix(1);
  const std::string_view answer = text.substr(0, length);
  const std::string_view response = text.substr(answer.size());
  for (const VerifierMode mode :
       {VerifierMode::kDapo, VerifierMode::kDapoStrict, VerifierMode::kDapoInteger,
        VerifierMode::kMath, VerifierMode::kGsm8k, VerifierMode::kExact, VerifierMode::kRetool}) {
    const Verification seen = Verify(mode, response, answer);
    PACE_CHECK(seen.correct == (seen.score == 1), "score and verdict must agree");
  }
  PACE_CHECK(IsMathEquivalent(answer, answer), "an answer must be the same as itself");
  PACE_CHECK(NormalizeDapo(answer).find('$') == std::string::npos, "no dollar sign stays");
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
