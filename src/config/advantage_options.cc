#include "config/advantage_options.h"

#include <array>

namespace pace {
namespace {

constexpr std::array<std::string_view, 2> kSingleNames = {"reward", "zero"};
constexpr char kCompatDoc[] = "Fail as verl does where there is nothing to standardise.";

std::vector<Field> NoAdvantageFields(AdvantageOptions& /*options*/) {
  return {};
}

// In the order of AdvantageKind.
struct AdvantageEntry {
  std::string_view name;
  std::vector<Field> (*fields)(AdvantageOptions&);
};
constexpr AdvantageEntry kEstimators[] = {
    {"dr_grpo", FieldsOf<&AdvantageOptions::dr_grpo>},
    {"gae", FieldsOf<&AdvantageOptions::gae>},
    {"gpg", FieldsOf<&AdvantageOptions::gpg>},
    {"grpo", FieldsOf<&AdvantageOptions::grpo>},
    {"opo", NoAdvantageFields},
    {"pass_at_k", FieldsOf<&AdvantageOptions::pass_at_k>},
    {"reinforce_plus_plus", FieldsOf<&AdvantageOptions::reinforce_plus_plus>},
    {"reinforce_plus_plus_baseline", FieldsOf<&AdvantageOptions::reinforce_baseline>},
    {"remax", NoAdvantageFields},
    {"rloo", FieldsOf<&AdvantageOptions::rloo>},
};
static_assert(std::size(kEstimators) == static_cast<size_t>(AdvantageKind::kRloo) + 1);

constexpr auto kAdvantageNames = [] {
  std::array<std::string_view, std::size(kEstimators)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kEstimators[i].name;
  return names;
}();

}  // namespace

std::vector<Field> GaeOptions::Fields() {
  return {
      Field::Real("gamma", gamma, "Discount per policy token.").AtLeast(0).AtMost(1),
      Field::Real("lambda", lambda, "Of the advantages.").AtLeast(0).AtMost(1),
      Field::Real("length_factor", length_factor,
                  "a > 0: lambda is 1 - 1 / (a n) for n policy tokens; 0 = lambda as given.")
          .AtLeast(0),
      Field::OptionalReal("returns_lambda", returns_lambda,
                          "Lambda of the returns; none = that of the advantages.", "none")
          .AtLeast(0)
          .AtMost(1),
      Field::Bool("standardize", standardize, "Standardise advantages over the batch."),
      Field::Bool("compat", compat, kCompatDoc),
  };
}

std::vector<Field> GpgOptions::Fields() {
  return {Field::Real("normalizer", normalizer, "What advantages are divided by.").Above(0)};
}

std::vector<Field> GrpoOptions::Fields() {
  return {Field::Bool("standardize", standardize, "Divide by the deviation of the group."),
          Field::Real("epsilon", epsilon, "Added to the deviation.").AtLeast(0)};
}

std::vector<Field> ReinforcePlusPlusOptions::Fields() {
  return {Field::Real("gamma", gamma, "Discount per policy token.").AtLeast(0).AtMost(1),
          Field::Bool("cross_masked", cross_masked,
                      "Returns pass over tokens that the policy only read."),
          Field::Bool("compat", compat, kCompatDoc)};
}

std::vector<Field> ReinforceBaselineOptions::Fields() {
  return {Field::Bool("compat", compat, kCompatDoc)};
}

std::vector<Field> RlooOptions::Fields() {
  return {Field::Enum("single", single, kSingleNames, "What a group of one gets.")};
}

std::span<const std::string_view> AdvantageEstimatorNames() {
  return kAdvantageNames;
}

std::vector<Field> AdvantageOptions::Fields() {
  return kEstimators[static_cast<size_t>(kind)].fields(*this);
}

Status AdvantageOptions::Validate() const {
  AdvantageOptions copy = *this;
  return CheckFields(copy.Fields(), kAdvantageNames[static_cast<size_t>(kind)]);
}

Result<AdvantageOptions> AdvantageNamed(std::string_view name, const NamedSettings& settings) {
  AdvantageOptions options;
  PACE_RETURN_IF_ERROR(Field::Enum("advantage", options.kind, kAdvantageNames, "")
                           .Set(PlainText{std::string(name)}, "advantage"));
  PACE_RETURN_IF_ERROR(SetFields(options.Fields(), settings, name));
  PACE_RETURN_IF_ERROR(options.Validate());
  return options;
}

}  // namespace pace
