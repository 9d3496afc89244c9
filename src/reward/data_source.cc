#include "reward/data_source.h"

#include <array>
#include <utility>

namespace pace {
namespace {

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

}  // namespace

std::optional<VerifierMode> VerifierOfDataSource(std::string_view data_source) {
  for (const auto& [name, mode] : kSources) {
    const bool matches = name.ends_with('*')
                             ? data_source.starts_with(name.substr(0, name.size() - 1))
                             : data_source == name;
    if (matches) return mode;
  }
  return std::nullopt;
}

}  // namespace pace
