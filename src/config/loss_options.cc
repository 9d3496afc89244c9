#include "config/loss_options.h"

#include <array>
#include <utility>

namespace pace {
namespace {

constexpr std::array<std::string_view, 2> kRatioLevels = {"token", "sequence"};
constexpr std::array<std::string_view, 2> kDivergenceNames = {"tv", "kl"};
constexpr std::array<std::string_view, 2> kM2poRules = {"paper", "official"};
constexpr std::array<std::string_view, 2> kM2poScopes = {"minibatch", "micro_batch"};

constexpr char kLowDoc[] = "The ratio is clipped below 1 - clip_low.";
constexpr char kHighDoc[] = "The ratio is clipped above 1 + clip_high.";

Field Width(std::string key, double& value, std::string doc) {
  return Field::Real(std::move(key), value, std::move(doc)).AtLeast(0).OrInfinite();
}

Field MaxLogRatio(double& value, std::string doc =
                                     "|log ratio| beyond it is cut, gradient "
                                     "included.") {
  return Field::Real("max_log_ratio", value, std::move(doc)).Above(0).OrInfinite();
}

Field DualClip(std::optional<double>& value) {
  return Field::OptionalReal("dual_clip", value,
                             "Bound of the loss of a bad token whose probability grew, as a ratio.",
                             "none")
      .Above(1, "a ratio; none turns it off");
}

Field Fraction(double& value, std::string doc) {
  return Field::Real("fraction", value, std::move(doc)).Above(0).AtMost(1);
}

std::vector<Field> NoLossFields(LossOptions& /*options*/) {
  return {};
}

// In the order of LossKind.
struct LossEntry {
  std::string_view name;
  std::vector<Field> (*fields)(LossOptions&);
};
constexpr LossEntry kLosses[] = {
    {"cispo", FieldsOf<&LossOptions::cispo>},
    {"clip_cov", FieldsOf<&LossOptions::clip_cov>},
    {"dapo", FieldsOf<&LossOptions::dapo>},
    {"decoupled_ppo", FieldsOf<&LossOptions::decoupled_ppo>},
    {"dis", FieldsOf<&LossOptions::dis>},
    {"dppo", FieldsOf<&LossOptions::dppo>},
    {"dro", FieldsOf<&LossOptions::dro>},
    {"geometric_mean", FieldsOf<&LossOptions::geometric_mean>},
    {"gpg", NoLossFields},
    {"gspo", FieldsOf<&LossOptions::gspo>},
    {"kl_cov", FieldsOf<&LossOptions::kl_cov>},
    {"m2po", FieldsOf<&LossOptions::m2po>},
    {"ppo", FieldsOf<&LossOptions::ppo>},
    {"reinforce", NoLossFields},
    {"sapo", FieldsOf<&LossOptions::sapo>},
    {"topr", FieldsOf<&LossOptions::topr>},
};
static_assert(std::size(kLosses) == static_cast<size_t>(LossKind::kTopr) + 1);

constexpr auto kLossNames = [] {
  std::array<std::string_view, std::size(kLosses)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kLosses[i].name;
  return names;
}();

}  // namespace

std::vector<Field> CispoOptions::Fields() {
  return {Width("clip_low", clip_low,
                "A token's weight is at least 1 - clip_low; 1 or more: no lower bound."),
          Width("clip_high", clip_high, "A token's weight is at most 1 + clip_high."),
          MaxLogRatio(max_log_ratio)};
}

std::vector<Field> ClipCovOptions::Fields() {
  return {Width("clip_low", clip_low, kLowDoc),
          Width("clip_high", clip_high, kHighDoc),
          Fraction(fraction, "Share of the policy tokens to leave out."),
          Field::Real("cov_low", cov_low, "Tokens of a larger covariance may be left out ..."),
          Field::Real("cov_high", cov_high, "... up to this one."),
          Field::Int("seed", seed, "Of the random choice among them.")};
}

std::vector<Field> DecoupledPpoOptions::Fields() {
  std::vector<Field> fields = {
      Width("clip_low", clip_low, kLowDoc),
      Width("clip_high", clip_high, kHighDoc),
      DualClip(dual_clip),
      Field::Enum("level", level, kRatioLevels, "Whose ratio: a token's own or its sequence's."),
      Field::Bool("weigh_behavior", weigh_behavior,
                  "Weigh tokens by pi_proximal / pi_rollout; false: all weigh 1."),
      Field::OptionalReal("m2_threshold", m2_threshold,
                          "Bound of the mean squared log of that weight; the largest leave.",
                          "none")
          .Above(0),
  };
  for (Field& field : behavior.Fields()) fields.push_back(std::move(field));
  return fields;
}

std::vector<Field> DisOptions::Fields() {
  return {
      Field::Real("band_low", band_low, "Ratios of 1 - band_low or less are left out ...").Above(0),
      Field::Real("band_high", band_high, "... and those of 1 + band_high or more.").Above(0)};
}

std::vector<Field> DppoOptions::Fields() {
  return {Field::Enum("divergence", divergence, kDivergenceNames,
                      "Distance of probabilities: total variation or KL."),
          Width("divergence_low", divergence_low, "Bound where a token is pushed down."),
          Width("divergence_high", divergence_high, "Bound where a token is pushed up."),
          Field::Real("max_ratio", max_ratio, "Cap of a token's weight; cutting it biases.")
              .Above(0)
              .OrInfinite(),
          MaxLogRatio(max_log_ratio)};
}

std::vector<Field> DroOptions::Fields() {
  return {Field::Real("beta", beta, "Strength of the pull towards the reference.").Above(0)};
}

std::vector<Field> GeometricMeanOptions::Fields() {
  return {Width("clip_low", clip_low, "The log-ratio of a token counts from -clip_low ..."),
          Width("clip_high", clip_high, "... to clip_high.")};
}

std::vector<Field> GspoOptions::Fields() {
  return {Width("clip_low", clip_low,
                "A sequence's ratio is clipped below 1 - clip_low; means move little."),
          Width("clip_high", clip_high, "It is clipped above 1 + clip_high."),
          MaxLogRatio(max_log_ratio, "Its logarithm above this is cut, gradient included.")};
}

std::vector<Field> KlCovOptions::Fields() {
  return {Fraction(fraction, "Share of the policy tokens that carry the penalty."),
          Width("kl_coefficient", kl_coefficient, "Of the penalty.")};
}

std::vector<Field> M2poOptions::Fields() {
  return {
      Field::Enum("rule", rule, kM2poRules, "How the trust region is chosen."),
      Width("budget", budget, "Bound of the mean squared log-ratio of trust-region tokens."),
      // kSequence has no name here.
      Field::OneOf("scope", kM2poScopes,
                   {[this] { return static_cast<size_t>(scope) - 1; },
                    [this](size_t index) { scope = static_cast<LossScope>(index + 1); }},
                   "Where tokens are compared; the published code: micro_batch."),
      Field::OptionalReal("min_clip_low", min_clip_low,
                          "official: the clip is at least this wide downwards.", "none")
          .AtLeast(0),
      Field::OptionalReal("min_clip_high", min_clip_high, "official: and upwards.", "none")
          .AtLeast(0),
      Field::Bool("compat", compat, "official: fail where the published code fails."),
  };
}

std::vector<Field> PpoOptions::Fields() {
  return {Width("clip_low", clip_low,
                "The ratio is clipped below 1 - clip_low: how far a bad token is pushed down."),
          Width("clip_high", clip_high,
                "The ratio is clipped above 1 + clip_high: how far a good token is pushed up."),
          DualClip(dual_clip), MaxLogRatio(max_log_ratio)};
}

std::vector<Field> SapoOptions::Fields() {
  return {Field::Real("tau_positive", tau_positive,
                      "Sharpness of the gate where the advantage is positive ...")
              .Above(0),
          Field::Real("tau_negative", tau_negative, "... and where it is not.").Above(0),
          MaxLogRatio(max_log_ratio)};
}

std::vector<Field> ToprOptions::Fields() {
  return {Field::Enum("level", level, kRatioLevels, "Whose ratio tapers the loss of failures."),
          Width("positive_weight", positive_weight, "Of responses with a positive reward."),
          Width("negative_weight", negative_weight, "Of the others.")};
}

std::span<const std::string_view> PolicyLossNames() {
  return kLossNames;
}

std::vector<Field> LossOptions::Fields() {
  return kLosses[static_cast<size_t>(kind)].fields(*this);
}

Status LossOptions::Validate() const {
  const std::string name(kLossNames[static_cast<size_t>(kind)]);
  LossOptions copy = *this;
  PACE_RETURN_IF_ERROR(CheckFields(copy.Fields(), name));
  if (kind == LossKind::kDecoupledPpo) return decoupled_ppo.behavior.Validate().At(name);
  if (kind != LossKind::kClipCov || clip_cov.cov_low < clip_cov.cov_high) return Status::Ok();
  return InvalidArgument(name, ".cov_low = ", clip_cov.cov_low,
                         ": must be below cov_high = ", clip_cov.cov_high);
}

Result<LossOptions> LossNamed(std::string_view name, const NamedSettings& settings) {
  LossOptions options;
  PACE_RETURN_IF_ERROR(
      Field::Enum("loss", options.kind, kLossNames, "").Set(PlainText{std::string(name)}, "loss"));
  PACE_RETURN_IF_ERROR(SetFields(options.Fields(), settings, name));
  PACE_RETURN_IF_ERROR(options.Validate());
  return options;
}

}  // namespace pace
