// Families rollout_correction and vcpo.
#include <charconv>
#include <cmath>
#include <limits>

#include "conformance/case_file.h"
#include "conformance/numerics_batch.h"
#include "conformance/numerics_case.h"
#include "train/correction/corrections.h"

namespace pace {
namespace {

// A text, or a number written as one.
std::string TextOf(const Value& value) {
  if (value.is_text()) return value.text();
  const std::optional<double> number = NumberOf(value);
  return number.has_value() ? Concat(*number) : "";
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

// "upper" or "lower_upper".
Status ReadBounds(const std::string& text, double& upper, std::optional<double>& lower) {
  const std::vector<std::string> parts = Split(text, '_');
  const auto read = [&](const std::string& part, double& out) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), out);
    return error == std::errc() && end == part.data() + part.size();
  };
  double low = 0;
  const bool good = parts.size() == 1   ? read(parts[0], upper)
                    : parts.size() == 2 ? read(parts[0], low) && read(parts[1], upper)
                                        : false;
  if (!good) return InvalidArgument("threshold = ", text, ": must be UPPER or LOWER_UPPER");
  if (parts.size() == 2) lower = low;
  return Status::Ok();
}

void CompareEss(NumericsCase& entry) {
  const PaddedLayout padded = ReadLayout(entry);
  EssLearningRateOptions options;
  options.compat = entry.has_quirk();
  options.base_ratio = entry.ConfigReal("base_ess_ratio").value_or(options.base_ratio);
  options.max_weight = entry.ConfigReal("rollout_is_threshold");
  options.bounded = entry.ConfigBool("use_clipped", false);
  if (entry.ConfigText("scaling_rule") == "linear") {
    options.rule = EssLearningRateOptions::Rule::kLinear;
  }
  const std::vector<double> train = entry.Numbers("old_log_prob");
  const std::vector<double> rollout = entry.Numbers("rollout_log_prob");
  const Result<EssLearningRate> result =
      ScaleLearningRate(padded.layout(), train, rollout, options);
  if (!entry.Check(result.status())) return;
  std::vector<double> weights;
  std::vector<double> bounded;
  for (const double log_weight : result->log_weights) {
    const bool overflows =
        entry.is_single_precision() && log_weight > std::log(std::numeric_limits<float>::max());
    weights.push_back(overflows ? std::numeric_limits<double>::infinity() : std::exp(log_weight));
    bounded.push_back(std::min(weights.back(), options.max_weight.value_or(weights.back())));
  }
  entry.ExpectAll("rollout_seq_is", weights);
  entry.ExpectAll("rollout_seq_is_clipped", bounded);
  entry.Expect("ess_ratio", result->ess_ratio);
  entry.Expect("ess_ratio_clipped", result->bounded_ess_ratio);
  const auto count = static_cast<double>(weights.size());
  entry.Expect("ess", result->ess_ratio * count);
  entry.Expect("ess_clipped", result->bounded_ess_ratio * count);
  entry.Expect("lr_scale", result->scale);
  const double base = entry.ConfigReal("base_lr").value_or(0);
  entry.Expect("lr_used", base * result->scale);
}

void CompareOpob(NumericsCase& entry) {
  OpobOptions options;
  const bool by_group = entry.ConfigText("scope") != "minibatch";
  options.scope = by_group ? OpobOptions::Scope::kGroup : OpobOptions::Scope::kMinibatch;
  const std::string aggregation = entry.ConfigText("agg_mode");
  if (aggregation == "median") options.aggregation = OpobOptions::Aggregation::kMedian;
  if (aggregation == "winsorized_mean") {
    options.aggregation = OpobOptions::Aggregation::kWinsorizedMean;
  }
  options.use_weights = entry.ConfigBool("use_is_weights", true);
  if (entry.ConfigBool("use_clipped_is_ratios", false)) {
    options.max_weight = entry.ConfigReal("rollout_is_threshold");
  }
  options.normalize_by_length = entry.ConfigBool("normalize_by_length", false);
  options.standardize = entry.ConfigBool("norm_by_std", false);
  const std::vector<int64_t> groups = entry.Integers("group");
  const std::vector<double> rewards = entry.Numbers("reward");
  const std::vector<double> advantages = entry.Numbers("advantage");
  const std::vector<double> norms = entry.Numbers("grad_norm");
  const std::vector<double> weights = entry.Numbers("seq_is");
  const std::vector<int64_t> lengths = entry.Integers("response_length");
  const Result<OpobResult> result = OffPolicyBaseline({.groups = groups,
                                                       .rewards = rewards,
                                                       .advantages = advantages,
                                                       .gradient_norms = norms,
                                                       .weights = weights,
                                                       .lengths = lengths},
                                                      options);
  if (!entry.Check(result.status())) return;
  const Value baselines = entry.Expected("baseline");
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string key = by_group ? Concat(groups[i]) : "None";
    entry.Compare("baseline", result->baselines[i], FieldOf(baselines, key));
  }
  const std::vector<double> vectors = entry.Numbers("grad_vectors");
  if (groups.empty() || vectors.size() % groups.size() != 0) {
    return entry.Fail("inputs.grad_vectors: must be one of one length for each trajectory");
  }
  const size_t width = vectors.size() / groups.size();
  std::vector<double> sum(width, 0.0);
  for (size_t i = 0; i < vectors.size(); ++i) {
    sum[i % width] += result->coefficients[i / width] * vectors[i];
  }
  // The peer accumulates gradients in float32.
  entry.Use(kSinglePrecision);
  entry.ExpectAll("accumulated_gradient", sum);
}

}  // namespace

Result<CorrectionOptions> ReadCorrectionOptions(const Value& config, bool compat) {
  CorrectionOptions options;
  options.compat = compat;
  const Value level = FieldOf(config, "rollout_is");
  if (level.is_text()) {
    ImportanceOptions importance;
    if (level.text() == "sequence") importance.level = RatioLevel::kSequence;
    const Value threshold = FieldOf(config, "rollout_is_threshold");
    if (!threshold.is_undefined()) {
      PACE_RETURN_IF_ERROR(ReadBounds(TextOf(threshold), importance.upper, importance.lower));
    }
    const Value normalize = FieldOf(config, "rollout_is_batch_normalize");
    importance.normalize = normalize.is_bool() && normalize.boolean();
    options.importance = importance;
  }
  const Value criteria = FieldOf(config, "rollout_rs");
  if (!criteria.is_text()) return options;
  const std::vector<std::string> names = Split(criteria.text(), ',');
  const std::vector<std::string> bounds =
      Split(TextOf(FieldOf(config, "rollout_rs_threshold")), ',');
  for (size_t i = 0; i < names.size(); ++i) {
    std::optional<RejectionCriterion> criterion = RejectionCriterionFromName(names[i]);
    if (!criterion.has_value()) return InvalidArgument("there is no criterion `", names[i], "`");
    if (bounds.size() != 1 && bounds.size() != names.size()) {
      return InvalidArgument("rollout_rs_threshold: one for all criteria, or one for each");
    }
    PACE_RETURN_IF_ERROR(
        ReadBounds(bounds[bounds.size() == 1 ? 0 : i], criterion->upper, criterion->lower));
    options.rejection.push_back(*criterion);
  }
  return options;
}

void CompareCorrectionMetrics(NumericsCase& entry, const MetricList& metrics,
                              const CorrectionOptions& options, const Value& theirs) {
  const auto compare = [&](const std::string& ours, const std::string& peer) {
    entry.CompareMetric(metrics, ours, FieldOf(theirs, "rollout_corr/" + peer));
  };
  compare("train/ess", "rollout_is_eff_sample_size");
  compare("train/is_mean", "rollout_is_mean");
  compare("train/is_out_of_band", "rollout_is_oob_ratio");
  compare("train/is_normalizer", "rollout_is_batch_norm_factor");
  // Per sequence the peer counts rows, empty ones too; we count tokens.
  if (options.importance.has_value() && options.importance->level == RatioLevel::kToken) {
    compare("train/is_fraction_high", "rollout_is_ratio_fraction_high");
    compare("train/is_fraction_low", "rollout_is_ratio_fraction_low");
  }
  for (const RejectionCriterion& criterion : options.rejection) {
    const std::string name = NameOf(criterion);
    compare("train/rejected_" + name, "rollout_rs_" + name + "_masked_fraction");
    compare("train/rejected_" + name + "_seq", "rollout_rs_" + name + "_seq_masked_fraction");
  }
  compare("train/rejected", "rollout_rs_masked_fraction");
  compare("train/mismatch_kl", "kl");
  compare("train/mismatch_k3", "k3_kl");
  compare("train/mismatch_chi2", "chi2_token");
}

void CheckRolloutCorrection(NumericsCase& entry) {
  const PaddedLayout padded = ReadLayout(entry);
  const std::vector<double> train = entry.Numbers("old_log_prob");
  const std::vector<double> rollout = entry.Numbers("rollout_log_prob");
  const Result<CorrectionOptions> options =
      ReadCorrectionOptions(entry.Config(), entry.has_quirk());
  if (!options.ok()) return entry.Fail(options.status().message());
  const Result<Correction> result = CorrectRollout(padded.layout(), train, rollout, *options);
  if (!entry.Check(result.status())) return;
  const std::vector<double> mask(result->mask.begin(), result->mask.end());
  entry.ExpectAll("modified_response_mask", mask);
  if (options->importance.has_value()) {
    entry.ExpectAll("rollout_is_weights", result->weights);
  }
  CompareCorrectionMetrics(entry, result->metrics, *options, entry.Expected("metrics"));
}

void CheckVcpo(NumericsCase& entry) {
  const std::string part = entry.ConfigText("part");
  if (part == "ess_lr") return CompareEss(entry);
  if (part == "opob") return CompareOpob(entry);
  entry.SkipBecause(Concat("we have no part `", part, "`"));
}

}  // namespace pace
