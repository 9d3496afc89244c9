#include "reward/verifier.h"

#include <array>
#include <utility>

#include "core/printable.h"
#include "reward/dapo.h"
#include "reward/dapo_integer.h"
#include "reward/equivalence.h"
#include "reward/exact.h"
#include "reward/gsm8k.h"
#include "reward/math_dataset.h"
#include "reward/retool.h"

namespace pace {
namespace {

constexpr std::array<std::pair<VerifierMode, std::string_view>, 8> kModes = {{
    {VerifierMode::kDapo, "dapo"},
    {VerifierMode::kDapoStrict, "dapo-strict"},
    {VerifierMode::kDapoInteger, "dapo-int"},
    {VerifierMode::kMath, "math"},
    {VerifierMode::kEquivalence, "equiv"},
    {VerifierMode::kGsm8k, "gsm8k"},
    {VerifierMode::kExact, "exact"},
    {VerifierMode::kRetool, "retool"},
}};

}  // namespace

Result<VerifierMode> VerifierModeFromName(std::string_view name) {
  for (const auto& [mode, known] : kModes) {
    if (known == name) return mode;
  }
  return InvalidArgument("mode = ", Printable(name),
                         ": must be dapo, dapo-strict, dapo-int, math, equiv, gsm8k, exact or "
                         "retool");
}

std::string_view Name(VerifierMode mode) {
  for (const auto& [known, name] : kModes) {
    if (known == mode) return name;
  }
  return "";
}

Verification Verify(VerifierMode mode, std::string_view response, std::string_view answer,
                    int64_t num_turns) {
  switch (mode) {
    case VerifierMode::kDapo:
      return VerifyDapo(response, answer);
    case VerifierMode::kDapoStrict:
      return VerifyDapoStrict(response, answer);
    case VerifierMode::kDapoInteger:
      return VerifyDapoInteger(response, answer);
    case VerifierMode::kMath:
      return VerifyMath(response, answer);
    case VerifierMode::kEquivalence:
      return VerifyEquivalence(response, answer);
    case VerifierMode::kGsm8k:
      return VerifyGsm8k(response, answer);
    case VerifierMode::kExact:
      return VerifyExact(response, answer);
    case VerifierMode::kRetool:
      return VerifyRetool(response, answer, num_turns);
  }
  return {};
}

}  // namespace pace
