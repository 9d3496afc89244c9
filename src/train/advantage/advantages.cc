#include "train/advantage/advantages.h"

#include <array>

#include "train/advantage/gae.h"
#include "train/advantage/gpg.h"
#include "train/advantage/grpo.h"
#include "train/advantage/opo.h"
#include "train/advantage/pass_at_k.h"
#include "train/advantage/reinforce_plus_plus.h"
#include "train/advantage/remax.h"
#include "train/advantage/rloo.h"

namespace pace {
namespace {

using Made = Result<std::unique_ptr<AdvantageEstimator>>;

template <typename Estimator>
Made Make(std::string_view name, const NamedSettings& settings,
          typename Estimator::Options options = {}) {
  OptionReader reader(name, settings);
  options.Read(reader);
  PACE_RETURN_IF_ERROR(reader.Finish());
  PACE_RETURN_IF_ERROR(options.Validate());
  return std::unique_ptr<AdvantageEstimator>(std::make_unique<Estimator>(options));
}

template <typename Estimator>
Made MakeDefault(std::string_view name, const NamedSettings& settings) {
  return Make<Estimator>(name, settings);
}

Made MakeDrGrpo(std::string_view name, const NamedSettings& settings) {
  return Make<GrpoAdvantage>(name, settings, {.standardize = false});
}

struct Entry {
  std::string_view name;
  Made (*make)(std::string_view, const NamedSettings&);
};

// All estimators, in alphabetical order.
constexpr Entry kEstimators[] = {
    {"dr_grpo", MakeDrGrpo},
    {"gae", MakeDefault<GaeAdvantage>},
    {"gpg", MakeDefault<GpgAdvantage>},
    {"grpo", MakeDefault<GrpoAdvantage>},
    {"opo", MakeDefault<OpoAdvantage>},
    {"pass_at_k", MakeDefault<PassAtKAdvantage>},
    {"reinforce_plus_plus", MakeDefault<ReinforcePlusPlusAdvantage>},
    {"reinforce_plus_plus_baseline", MakeDefault<ReinforceBaselineAdvantage>},
    {"remax", MakeDefault<RemaxAdvantage>},
    {"rloo", MakeDefault<RlooAdvantage>},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kEstimators)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kEstimators[i].name;
  return names;
}();

}  // namespace

Status RewardBatch::Validate() const {
  PACE_RETURN_IF_ERROR(layout.Validate());
  const size_t num_sequences = layout.num_sequences();
  const size_t num_tokens = layout.num_tokens();
  PACE_RETURN_IF_ERROR(CheckLength("rewards", rewards.size(), "sequences", num_sequences, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("token_rewards", token_rewards.size(), "tokens", num_tokens, true));
  PACE_RETURN_IF_ERROR(CheckLength("values", values.size(), "tokens", num_tokens, true));
  return CheckLength("baselines", baselines.size(), "sequences", num_sequences, true);
}

Result<Advantages> AdvantageEstimator::Estimate(const RewardBatch& batch) const {
  PACE_RETURN_IF_ERROR(batch.Validate());
  if (inputs().values) {
    PACE_RETURN_IF_ERROR(
        CheckLength("values", batch.values.size(), "tokens", batch.layout.num_tokens(), false));
  }
  if (inputs().baselines) {
    PACE_RETURN_IF_ERROR(CheckLength("baselines", batch.baselines.size(), "sequences",
                                     batch.layout.num_sequences(), false));
  }
  return Compute(batch);
}

Result<std::unique_ptr<AdvantageEstimator>> MakeAdvantageEstimator(std::string_view name,
                                                                   const NamedSettings& settings) {
  std::string known;
  for (const Entry& entry : kEstimators) {
    if (entry.name == name) return entry.make(name, settings);
    known += Concat(known.empty() ? "" : ", ", entry.name);
  }
  return InvalidArgument("advantage = ", name, ": must be one of ", known);
}

std::span<const std::string_view> AdvantageEstimatorNames() {
  return kNames;
}

}  // namespace pace
