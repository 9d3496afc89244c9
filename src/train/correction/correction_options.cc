#include <array>
#include <utility>

#include "train/correction/rollout_correction.h"

namespace pace {
namespace {

constexpr std::array<std::pair<std::string_view, RejectionCriterion::Level>, 4> kLevels = {{
    {"token", RejectionCriterion::Level::kToken},
    {"seq_sum", RejectionCriterion::Level::kSequenceSum},
    {"seq_mean", RejectionCriterion::Level::kSequenceMean},
    {"seq_max", RejectionCriterion::Level::kSequenceMax},
}};
constexpr std::array<std::pair<std::string_view, RejectionCriterion::Measure>, 3> kMeasures = {{
    {"k1", RejectionCriterion::Measure::kK1},
    {"k2", RejectionCriterion::Measure::kK2},
    {"k3", RejectionCriterion::Measure::kK3},
}};

// The largest k1 says nothing about a sequence whose ratios are small.
bool Exists(RejectionCriterion::Level level, RejectionCriterion::Measure measure) {
  return level != RejectionCriterion::Level::kSequenceMax ||
         measure != RejectionCriterion::Measure::kK1;
}

// Bounds of a ratio.
Status CheckBounds(const std::string& owner, double upper, const std::optional<double>& lower) {
  if (!(upper > 0)) return InvalidArgument(owner, ".upper = ", upper, ": must be positive");
  if (!lower.has_value()) return Status::Ok();
  if (!(*lower > 0)) return InvalidArgument(owner, ".lower = ", *lower, ": must be positive");
  if (*lower <= upper) return Status::Ok();
  return InvalidArgument(owner, ".lower = ", *lower, ": must be <= upper = ", upper);
}

// Reads reject_NAME and reject_NAME_lower of every criterion there is.
void ReadRejection(OptionReader& reader, std::vector<RejectionCriterion>& rejection) {
  for (const auto& [level_name, level] : kLevels) {
    for (const auto& [measure_name, measure] : kMeasures) {
      if (!Exists(level, measure)) continue;
      RejectionCriterion criterion{.level = level, .measure = measure};
      const std::string name = "reject_" + NameOf(criterion);
      std::optional<double> upper;
      reader.OptionalReal(name, upper);
      if (!upper.has_value()) continue;
      criterion.upper = *upper;
      if (measure == RejectionCriterion::Measure::kK1) {
        reader.OptionalReal(name + "_lower", criterion.lower);
      }
      rejection.push_back(criterion);
    }
  }
}

void ReadImportance(OptionReader& reader, bool has_lower, ImportanceOptions& importance) {
  reader.Choice("level", {{"token", RatioLevel::kToken}, {"sequence", RatioLevel::kSequence}},
                importance.level);
  reader.Real("upper", importance.upper);
  if (has_lower) reader.Real("lower", *importance.lower);
  reader.Bool("normalize", importance.normalize);
}

}  // namespace

Result<CorrectionOptions> MakeCorrection(std::string_view name, const NamedSettings& settings) {
  CorrectionOptions options;
  if (name == "tis") {
    options.importance = ImportanceOptions{};
  } else if (name == "icepop") {
    options.importance = ImportanceOptions{.upper = 5, .lower = 0.5};
  } else if (name != "none") {
    return InvalidArgument("correction = ", name, ": must be one of icepop, none, tis");
  }
  OptionReader reader(name, settings);
  if (options.importance.has_value()) {
    ReadImportance(reader, name == "icepop", *options.importance);
  }
  ReadRejection(reader, options.rejection);
  using K1Bounds = CorrectionOptions::K1Bounds;
  reader.Choice("k1_bounds",
                {{"rollout_over_train", K1Bounds::kRolloutOverTrain},
                 {"train_over_rollout", K1Bounds::kTrainOverRollout}},
                options.k1_bounds);
  reader.Bool("compat", options.compat);
  PACE_RETURN_IF_ERROR(reader.Finish());
  PACE_RETURN_IF_ERROR(options.Validate());
  return options;
}

Status ImportanceOptions::Validate() const {
  return CheckBounds("importance", upper, lower);
}

Status RejectionCriterion::Validate() const {
  const std::string name = NameOf(*this);
  if (!Exists(level, measure)) return InvalidArgument("rejection: there is no ", name);
  if (measure != Measure::kK1 && lower.has_value()) {
    return InvalidArgument(name, ".lower = ", *lower, ": only k1 has a lower bound");
  }
  return CheckBounds(name, upper, lower);
}

Status CorrectionOptions::Validate() const {
  if (importance.has_value()) PACE_RETURN_IF_ERROR(importance->Validate());
  for (const RejectionCriterion& criterion : rejection) {
    PACE_RETURN_IF_ERROR(criterion.Validate());
  }
  return Status::Ok();
}

std::optional<RejectionCriterion> RejectionCriterionFromName(std::string_view name) {
  for (const auto& [level_name, level] : kLevels) {
    for (const auto& [measure_name, measure] : kMeasures) {
      if (name.size() == level_name.size() + 1 + measure_name.size() &&
          name.starts_with(level_name) && name.ends_with(measure_name) && Exists(level, measure)) {
        return RejectionCriterion{.level = level, .measure = measure};
      }
    }
  }
  return std::nullopt;
}

std::string NameOf(const RejectionCriterion& criterion) {
  return Concat(kLevels[static_cast<size_t>(criterion.level)].first, "_",
                kMeasures[static_cast<size_t>(criterion.measure)].first);
}

}  // namespace pace
