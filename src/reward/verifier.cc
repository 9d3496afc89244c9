#include "reward/verifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "core/printable.h"
#include "reward/dapo.h"
#include "reward/equivalence.h"
#include "reward/math_dataset.h"
#include "reward/python_characters.h"

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

// A name that ends in * stands for every source that begins so.
constexpr std::array<std::pair<std::string_view, VerifierMode>, 9> kSources = {{
    {"openai/gsm8k", VerifierMode::kGsm8k},
    {"lighteval/MATH", VerifierMode::kMath},
    {"DigitalLearningGmbH/MATH-lighteval", VerifierMode::kMath},
    {"HuggingFaceH4/MATH-500", VerifierMode::kMath},
    {"math_dapo", VerifierMode::kDapo},
    {"math", VerifierMode::kDapo},
    {"math_dapo_reasoning", VerifierMode::kDapo},
    {"aime*", VerifierMode::kDapo},
    {"numina_*", VerifierMode::kEquivalence},
}};

// The whole response against the answer, white space at either end left out.
Verification VerifyExact(std::string_view response, std::string_view answer) {
  const std::string_view ours = StripSpace(response);
  return ZeroOrOne(ours == StripSpace(answer), std::string(ours));
}

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
    case VerifierMode::kOwn:
      return {};
  }
  return {};
}

std::optional<VerifierMode> VerifierOfDataSource(std::string_view data_source) {
  for (const auto& [name, mode] : kSources) {
    const bool matches = name.ends_with('*')
                             ? data_source.starts_with(name.substr(0, name.size() - 1))
                             : data_source == name;
    if (matches) return mode;
  }
  return std::nullopt;
}

Status OverlongOptions::Validate() const {
  if (max_length < 1) return InvalidArgument("max_length = ", max_length, ": must be >= 1");
  if (buffer_length < 1 || buffer_length > max_length) {
    return InvalidArgument("buffer_length = ", buffer_length,
                           ": must be in [1, max_length = ", max_length, "]");
  }
  if (!(factor >= 0) || !std::isfinite(factor)) {
    return InvalidArgument("factor = ", factor, ": must be finite and >= 0 (0 means no penalty)");
  }
  return Status::Ok();
}

double OverlongPenalty(int64_t length, const OverlongOptions& options) {
  const int64_t exceeded = length - (options.max_length - options.buffer_length);
  if (exceeded <= 0) return 0;
  return -static_cast<double>(exceeded) / static_cast<double>(options.buffer_length) *
         options.factor;
}

}  // namespace pace
