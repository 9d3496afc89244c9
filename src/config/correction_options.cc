#include "config/correction_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace pace {
namespace {

using Level = RejectionCriterion::Level;
using Measure = RejectionCriterion::Measure;

constexpr std::array<std::string_view, 3> kCorrectionNames = {"none", "tis", "icepop"};
constexpr std::array<std::string_view, 2> kImportanceLevels = {"token", "sequence"};
constexpr std::array<std::string_view, 2> kK1Names = {"rollout_over_train", "train_over_rollout"};
constexpr std::array<std::string_view, 2> kActionNames = {"mask", "clamp"};
constexpr std::array<std::string_view, 4> kBehaviorMeasures = {"ratio", "k1", "k2", "k3"};
constexpr std::array<std::string_view, 3> kBehaviorAggregations = {"mean", "sum", "max"};
constexpr std::array<std::string_view, 2> kEssRules = {"sqrt", "linear"};
constexpr std::array<std::string_view, 2> kOpobScopes = {"group", "minibatch"};
constexpr std::array<std::string_view, 3> kOpobAggregations = {"mean", "median", "winsorized_mean"};

constexpr std::array<std::string_view, 4> kCriterionLevels = {"token", "seq_sum", "seq_mean",
                                                              "seq_max"};
constexpr std::array<std::string_view, 3> kCriterionMeasures = {"k1", "k2", "k3"};

// An upper bound that was not set.
constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

// All criteria in order. The largest k1 says nothing about a sequence whose ratios
// are small.
std::vector<RejectionCriterion> AllCriteria() {
  std::vector<RejectionCriterion> all;
  for (size_t level = 0; level < kCriterionLevels.size(); ++level) {
    for (size_t measure = 0; measure < kCriterionMeasures.size(); ++measure) {
      const RejectionCriterion one{.level = static_cast<Level>(level),
                                   .measure = static_cast<Measure>(measure),
                                   .upper = kUnset};
      if (one.level != Level::kSequenceMax || one.measure != Measure::kK1) all.push_back(one);
    }
  }
  return all;
}

bool SameCriterion(const RejectionCriterion& a, const RejectionCriterion& b) {
  return a.level == b.level && a.measure == b.measure;
}

// Bounds of a ratio.
Status CheckBounds(const std::string& owner, double upper, const std::optional<double>& lower) {
  if (!(upper > 0)) return InvalidArgument(owner, ".upper = ", upper, ": must be positive");
  if (!lower.has_value()) return Status::Ok();
  if (!(*lower > 0)) return InvalidArgument(owner, ".lower = ", *lower, ": must be positive");
  if (*lower <= upper) return Status::Ok();
  return InvalidArgument(owner, ".lower = ", *lower, ": must be <= upper = ", upper);
}

const RejectionCriterion* FindCriterion(const std::vector<RejectionCriterion>& list,
                                        const RejectionCriterion& wanted) {
  for (const RejectionCriterion& one : list) {
    if (SameCriterion(one, wanted)) return &one;
  }
  return nullptr;
}

// Changes the criterion of that level and measure, where necessary a new one; one
// without bounds leaves the list.
template <typename Change>
void Edit(std::vector<RejectionCriterion>& list, RejectionCriterion wanted, const Change& change) {
  if (const RejectionCriterion* const found = FindCriterion(list, wanted)) wanted = *found;
  std::erase_if(list, [&](const RejectionCriterion& one) { return SameCriterion(one, wanted); });
  change(wanted);
  if (std::isnan(wanted.upper) && !wanted.lower.has_value()) return;
  list.push_back(wanted);
  std::sort(list.begin(), list.end(), [](const RejectionCriterion& a, const RejectionCriterion& b) {
    return std::pair(a.level, a.measure) < std::pair(b.level, b.measure);
  });
}

void AddRejectionFields(std::vector<RejectionCriterion>& list, std::vector<Field>& fields) {
  for (const RejectionCriterion& one : AllCriteria()) {
    const std::string name = "reject_" + NameOf(one);
    FieldAccess<std::optional<double>> upper(
        [&list, one]() -> std::optional<double> {
          const RejectionCriterion* const found = FindCriterion(list, one);
          if (found == nullptr || std::isnan(found->upper)) return std::nullopt;
          return found->upper;
        },
        [&list, one](std::optional<double> bound) {
          Edit(list, one, [&](RejectionCriterion& own) { own.upper = bound.value_or(kUnset); });
        });
    const bool has_lower = one.measure == Measure::kK1;
    fields.push_back(Field::OptionalReal(name, std::move(upper),
                                         has_lower ? "Reject above this pi_rollout / pi_train."
                                                   : "Reject above this measure of log pi_train / "
                                                     "pi_rollout.",
                                         "none")
                         .Above(0)
                         .OrInfinite());
    if (!has_lower) continue;
    FieldAccess<std::optional<double>> lower(
        [&list, one] {
          const RejectionCriterion* const found = FindCriterion(list, one);
          return found == nullptr ? std::nullopt : found->lower;
        },
        [&list, one](std::optional<double> bound) {
          Edit(list, one, [&](RejectionCriterion& own) { own.lower = bound; });
        });
    fields.push_back(Field::OptionalReal(name + "_lower", std::move(lower),
                                         "Reject below this one; none = 1 / the upper one.", "none")
                         .Above(0));
  }
}

}  // namespace

std::span<const std::string_view> CorrectionNames() {
  return kCorrectionNames;
}

CorrectionOptions CorrectionOptions::Of(CorrectionKind kind) {
  CorrectionOptions options;
  if (kind == CorrectionKind::kTis) options.importance = ImportanceOptions{};
  if (kind == CorrectionKind::kIcePop) {
    options.importance = ImportanceOptions{.upper = 5, .lower = 0.5};
  }
  return options;
}

CorrectionKind CorrectionOptions::kind() const {
  if (!importance.has_value()) return CorrectionKind::kNone;
  return importance->lower.has_value() ? CorrectionKind::kIcePop : CorrectionKind::kTis;
}

std::vector<Field> CorrectionOptions::Fields() {
  std::vector<Field> fields;
  if (importance.has_value()) {
    fields.push_back(Field::Enum("level", importance->level, kImportanceLevels,
                                 "Whose ratio pi_train / pi_rollout is the weight."));
    fields.push_back(
        Field::Real("upper", importance->upper, "Largest weight.").Above(0).OrInfinite());
    if (importance->lower.has_value()) {
      fields.push_back(Field::Real("lower", *importance->lower,
                                   "Tokens with a smaller or a larger weight than the bounds "
                                   "weigh 0.")
                           .Above(0));
    }
    fields.push_back(Field::Bool("normalize", importance->normalize,
                                 "Divide by the mean weight of the whole batch."));
  }
  AddRejectionFields(rejection, fields);
  fields.push_back(Field::Enum("k1_bounds", k1_bounds, kK1Names,
                               "Which ratio the bounds of k1 apply to; verl's code: "
                               "rollout_over_train."));
  fields.push_back(
      Field::Bool("compat", compat, "Fail where verl fails: no policy token, or every weight 0."));
  return fields;
}

Status ImportanceOptions::Validate() const {
  return CheckBounds("importance", upper, lower);
}

Status RejectionCriterion::Validate() const {
  const std::string name = NameOf(*this);
  if (FindCriterion(AllCriteria(), *this) == nullptr) {
    return InvalidArgument("rejection: there is no ", name);
  }
  if (measure != Measure::kK1 && lower.has_value()) {
    return InvalidArgument(name, ".lower = ", *lower, ": only k1 has a lower bound");
  }
  if (std::isnan(upper) && lower.has_value()) {
    return InvalidArgument("reject_", name, "_lower = ", *lower, ": needs reject_", name);
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
  for (const RejectionCriterion& one : AllCriteria()) {
    if (NameOf(one) == name) return RejectionCriterion{.level = one.level, .measure = one.measure};
  }
  return std::nullopt;
}

std::string NameOf(const RejectionCriterion& criterion) {
  return Concat(kCriterionLevels[static_cast<size_t>(criterion.level)], "_",
                kCriterionMeasures[static_cast<size_t>(criterion.measure)]);
}

Result<CorrectionOptions> CorrectionNamed(std::string_view name, const NamedSettings& settings) {
  CorrectionKind kind = CorrectionKind::kNone;
  PACE_RETURN_IF_ERROR(Field::Enum("correction", kind, kCorrectionNames, "")
                           .Set(PlainText{std::string(name)}, "correction"));
  CorrectionOptions options = CorrectionOptions::Of(kind);
  PACE_RETURN_IF_ERROR(SetFields(options.Fields(), settings, name));
  PACE_RETURN_IF_ERROR(options.Validate());
  return options;
}

std::vector<Field> BehaviorOptions::Fields() {
  return {
      Field::Enum("behavior_level", level, kImportanceLevels, "What the bounds apply to."),
      Field::Enum("behavior_action", action, kActionNames,
                  "Out of bounds: left out, or the weight of the bound."),
      Field::Enum("behavior_measure", measure, kBehaviorMeasures,
                  "Of d = log pi_proximal - log pi_rollout: e^d, d, d^2 / 2 or e^-d - 1 + d."),
      Field::Enum("behavior_aggregation", aggregation, kBehaviorAggregations,
                  "How tokens make up a sequence's measure."),
      Field::Real("behavior_upper", upper, "Largest measure."),
      Field::OptionalReal("behavior_lower", lower, "Smallest measure.", "none"),
  };
}

Status BehaviorOptions::Validate() const {
  if (lower.has_value() && *lower > upper) {
    return InvalidArgument("behavior_lower = ", *lower, ": must be <= behavior_upper = ", upper);
  }
  const bool bounds_weights = measure == Measure::kRatio || action == Action::kClamp;
  if (bounds_weights && !(upper > 0)) {
    return InvalidArgument("behavior_upper = ", upper, ": must be positive (it bounds a ratio)");
  }
  return Status::Ok();
}

std::vector<Field> EssLearningRateOptions::Fields() {
  return {
      Field::Enum("rule", rule, kEssRules, "How the rate follows the effective sample size."),
      Field::Real("base_ratio", base_ratio, "The effective sample ratio at which it is whole.")
          .Above(0),
      Field::OptionalReal("max_weight", max_weight,
                          "Bound of a sequence's weight. The published scripts: 8.", "none")
          .Above(0),
      Field::Bool("bounded", bounded, "Use the bounded weights."),
      Field::Bool("compat", compat, "Compute it as the published code does, in float32."),
  };
}

Status EssLearningRateOptions::Validate() const {
  EssLearningRateOptions copy = *this;
  return CheckFields(copy.Fields(), "ess");
}

std::vector<Field> OpobOptions::Fields() {
  return {
      Field::Enum("scope", scope, kOpobScopes,
                  "One baseline per group, from rewards, or per minibatch, from advantages."),
      Field::Enum("aggregation", aggregation, kOpobAggregations,
                  "How rewards make up the baseline; winsorized_mean cuts them at their weighted "
                  "5 % and 95 % quantiles."),
      Field::Bool("use_weights", use_weights, "The squared importance weight enters."),
      Field::OptionalReal("max_weight", max_weight, "Bound of the importance weight.", "none")
          .Above(0),
      Field::Bool("normalize_by_length", normalize_by_length,
                  "Divide by the squared number of policy tokens."),
      Field::Bool("standardize", standardize,
                  "Divide coefficients by the deviation of the group's rewards."),
  };
}

Status OpobOptions::Validate() const {
  OpobOptions copy = *this;
  return CheckFields(copy.Fields(), "opob");
}

}  // namespace pace
