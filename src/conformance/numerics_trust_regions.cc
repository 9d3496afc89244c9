// Families m2po, decoupled_ppo and topr.
#include <cmath>
#include <numeric>

#include "conformance/case_file.h"
#include "conformance/numerics_batch.h"
#include "conformance/numerics_case.h"
#include "train/correction/corrections.h"
#include "train/loss/m2po_region.h"

namespace pace {
namespace {

// AReaL's rejection_sampling object as settings of ours; null turns it off.
NamedSettings BehaviorSettings(const Value& config) {
  if (!config.is_dict()) return {{"weigh_behavior", "false"}};
  NamedSettings settings;
  constexpr std::pair<const char*, const char*> kNames[] = {{"behavior_level", "level"},
                                                            {"behavior_action", "action"},
                                                            {"behavior_measure", "metric"},
                                                            {"behavior_aggregation", "agg"}};
  for (const auto& [ours, theirs] : kNames) {
    const Value value = FieldOf(config, theirs);
    if (!value.is_text()) continue;
    const std::string& text = value.text();
    settings.push_back({ours, text.starts_with("kl_") ? text.substr(3) : text});
  }
  if (const auto upper = NumberOf(FieldOf(config, "upper"))) {
    settings.push_back({"behavior_upper", Concat(*upper)});
  }
  if (const auto lower = NumberOf(FieldOf(config, "lower"))) {
    settings.push_back({"behavior_lower", Concat(*lower)});
  }
  return settings;
}

NamedSettings ArealSettings(const NumericsCase& entry) {
  NamedSettings settings = entry.Settings(
      "clip_low=eps_clip dual_clip=c_clip level=importance_sampling_level "
      "m2_threshold=m2_threshold");
  const auto high = entry.ConfigReal("eps_clip_higher");
  const double clip_high = high.value_or(entry.ConfigReal("eps_clip").value_or(0.2));
  settings.push_back({"clip_high", Concat(clip_high)});
  for (NamedSetting& setting : BehaviorSettings(entry.Config("rejection_sampling"))) {
    settings.push_back(std::move(setting));
  }
  return settings;
}

Result<BehaviorOptions> ReadBehavior(const NumericsCase& entry) {
  BehaviorOptions options;
  const NamedSettings settings = BehaviorSettings(entry.Config("rejection_sampling"));
  PACE_RETURN_IF_ERROR(SetFields(options.Fields(), settings, "rejection_sampling"));
  PACE_RETURN_IF_ERROR(options.Validate());
  return options;
}

bool HasProximal(NumericsCase& entry, const PaddedBatch& batch) {
  if (batch.proximal_logprobs.size() != batch.tokens.num_tokens()) {
    entry.Fail("inputs.proximal_log_prob: must have the size of the mask");
  }
  return !entry.failed();
}

// Share of the tokens in `mask` that the peer marked.
double MarkedShare(const Value& marks, std::span<const uint8_t> mask) {
  std::vector<double> numbers;
  if (!AppendNumbers(marks, numbers) || numbers.size() != mask.size()) return 0;
  MeanOf share;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) share.Add(numbers[i]);
  }
  return share.value();
}

// The peer's clip masks and ratios are our metrics, token by token.
void CompareArealStatistics(NumericsCase& entry, const LossResult& result,
                            std::span<const uint8_t> mask, std::span<const uint8_t> kept) {
  const auto compare = [&](const char* ours, const char* theirs, std::span<const uint8_t> over) {
    const Value marks = entry.Expected(theirs);
    if (!marks.is_undefined()) {
      entry.CompareMetric(result.metrics, ours, Value(MarkedShare(marks, over)));
    }
  };
  compare("train/clip_fraction", "clip_mask", mask);
  compare("train/clip_fraction_lower", "dual_clip_mask", mask);
  compare("train/ratio", "importance_weight", kept);
}

void CheckArealLoss(NumericsCase& entry, const std::string& part) {
  PaddedBatch batch = ReadBatch(entry);
  if (entry.failed() || (part != "sapo" && !HasProximal(entry, batch))) return;
  const MinibatchTotals totals = CountTotals(batch.tokens.layout);
  std::vector<uint8_t> kept = batch.padded.mask;
  BehaviorWeights behavior;
  if (entry.Config("rejection_sampling").is_dict()) {
    // The peer weighs behaviour in float32.
    entry.Use(kSinglePrecision);
    const Result<BehaviorOptions> options = ReadBehavior(entry);
    if (!options.ok()) return entry.Fail(options.status().message());
    behavior = WeighBehavior(batch.tokens.layout, batch.proximal_logprobs, batch.rollout_logprobs,
                             *options);
    kept = behavior.kept;
    const std::vector<double> kept_numbers(kept.begin(), kept.end());
    entry.ExpectAll("behave_imp_weight", behavior.weights);
    entry.ExpectAll("behave_mask", kept_numbers);
    entry.Expect("filtered_fraction", behavior.filtered_fraction);
  }
  const std::vector<uint8_t> mask = batch.padded.mask;
  std::string loss = "decoupled_ppo";
  NamedSettings settings;
  if (part == "ppo") {
    settings = ArealSettings(entry);
  } else {
    loss = part;
    settings = entry.Settings(part == "cispo"
                                  ? "clip_low=eps_clip clip_high=eps_clip_higher max_log_ratio:=inf"
                                  : "tau_positive=tau_pos tau_negative=tau_neg max_log_ratio:=inf");
    batch.padded.mask = kept;
    batch.Bind();
    if (part == "cispo") batch.tokens.reference = RatioReference::kProximal;
    if (!behavior.weights.empty()) batch.tokens.importance_weights = behavior.weights;
  }
  const Result<LossResult> result =
      EvaluateCase(entry, batch, loss, settings, "token-mean", totals, PaddingRule::kIgnore);
  if (!entry.Check(result.status())) return;
  CompareResult(entry, *result);
  CompareArealStatistics(entry, *result, part == "ppo" ? mask : kept, kept);
}

void CheckProximalEstimates(NumericsCase& entry) {
  const std::vector<double> rollout = entry.Numbers("old_log_prob");
  const std::vector<double> trained = entry.Numbers("log_prob");
  const std::vector<int64_t> versions = entry.Integers("versions");
  const auto version = static_cast<int64_t>(entry.ConfigReal("current_version").value_or(0));
  if (rollout.size() != trained.size() || versions.size() != trained.size()) {
    return entry.Fail("inputs: arrays of different sizes");
  }
  constexpr std::pair<const char*, ProximalEstimate> kMethods[] = {
      {"loglinear", ProximalEstimate::kLogLinear},
      {"linear", ProximalEstimate::kLinear},
      {"rollout", ProximalEstimate::kRollout}};
  // The peer interpolates with float32 factors.
  entry.Use(kSinglePrecision);
  for (const auto& [name, method] : kMethods) {
    entry.CompareAll(name,
                     EstimateProximal(method, rollout, trained, versions, version - 1, version),
                     entry.Expected(name));
  }
}

// The region that M2PO chose, in the peer's words.
void CompareRegion(NumericsCase& entry, const M2poRegion& region, bool paper,
                   int64_t num_policy_tokens) {
  entry.Expect("trust_region_tokens", static_cast<double>(region.num_trust_tokens));
  entry.Expect("M2_after", region.m2_after);
  entry.Compare("M2", region.m2_before, entry.Expected(paper ? "M2_before" : "M2"));
  if (paper) {
    const std::vector<double> kept(region.kept.begin(), region.kept.end());
    const auto num_kept = std::accumulate(kept.begin(), kept.end(), 0.0);
    entry.Expect("num_masked", static_cast<double>(num_policy_tokens) - num_kept);
    return entry.ExpectAll("kept_mask", kept);
  }
  entry.Expect("ratio_lower_bound", region.lower);
  entry.Expect("ratio_upper_bound", region.upper);
  entry.Expect("clip_low", 1 - region.lower);
  entry.Expect("clip_high", region.upper - 1);
  const Value tau = entry.Expected("tau");
  if (!tau.is_none() && !tau.is_undefined()) entry.Compare("tau", std::log(region.upper), tau);
}

// Whether our bounds are the peer's to the last bit. Both are float32
// exponentials of the log-ratio of one token, which stands exactly at its bound:
// where two libraries round differently, they disagree on clipping that token.
bool HasExactBounds(const NumericsCase& entry, const M2poRegion& region) {
  const auto is = [](double ours, const std::optional<double>& theirs) {
    return !theirs.has_value() || ours == *theirs;
  };
  return is(region.lower, NumberOf(entry.Expected("ratio_lower_bound"))) &&
         is(region.upper, NumberOf(entry.Expected("ratio_upper_bound")));
}

// The clipped loss with the bounds of the peer, which ours must be near.
NamedSettings GivenBounds(const NumericsCase& entry) {
  const auto text = [&](const char* name) {
    return Concat(NumberOf(entry.Expected(name)).value_or(0));
  };
  return {
      {"clip_low", text("clip_low")}, {"clip_high", text("clip_high")}, {"max_log_ratio", "inf"}};
}

// AReaL's port: tokens leave by their distance from who sampled them.
void CheckArealM2po(NumericsCase& entry, const PaddedBatch& batch) {
  if (!HasProximal(entry, batch)) return;
  const std::vector<uint8_t> kept =
      ArealKeptTokens(batch.tokens.layout, batch.rollout_logprobs, batch.proximal_logprobs,
                      entry.ConfigReal("m2_threshold").value_or(0.04));
  const std::vector<double> kept_numbers(kept.begin(), kept.end());
  entry.ExpectAll("kept_mask", kept_numbers);
  entry.Use(kSinglePrecision);
  const Result<LossResult> result =
      EvaluateCase(entry, batch, "decoupled_ppo", ArealSettings(entry), "token-mean",
                   CountTotals(batch.tokens.layout), PaddingRule::kIgnore);
  if (!entry.Check(result.status())) return;
  CompareResult(entry, *result);
}

}  // namespace

void CheckM2po(NumericsCase& entry) {
  const PaddedBatch batch = ReadBatch(entry);
  if (entry.failed()) return;
  const std::string rule = entry.ConfigText("rule");
  if (rule == "areal") return CheckArealM2po(entry, batch);
  const bool paper = rule == "paper";
  M2poOptions options;
  const NamedSettings settings = entry.Settings(
      "rule=rule budget=M2_budget min_clip_low=miniclip_low min_clip_high=miniclip_high compat");
  // The settings are valid also where the peer raises an error.
  const Status set = SetFields(options.Fields(), settings, "m2po");
  if (!set.ok()) return entry.Fail(set.message());
  const Result<M2poRegion> region = ChooseRegion(batch.tokens, options);
  const bool exact = !region.ok() || paper || HasExactBounds(entry, *region);
  const std::string mode = entry.ConfigText("loss_agg_mode");
  const Result<LossResult> result =
      EvaluateCase(entry, batch, exact ? "m2po" : "ppo", exact ? settings : GivenBounds(entry),
                   mode.empty() ? "token-mean" : mode, CountTotals(batch.tokens.layout),
                   PaddingRule::kEarlyVerl);
  if (!entry.Check(result.status()) || !entry.Check(region.status())) return;
  CompareRegion(entry, *region, paper, batch.tokens.layout.num_policy_tokens());
  CompareResult(entry, *result);
  if (paper) return;
  entry.CompareMetric(result->metrics, "train/clip_fraction", entry.Expected("pg_clipfrac"));
  entry.CompareMetric(result->metrics, "train/kl", entry.Expected("ppo_kl"));
}

void CheckDecoupledPpo(NumericsCase& entry) {
  const std::string part = entry.ConfigText("part");
  if (part == "prox_approx") return CheckProximalEstimates(entry);
  if (part == "ppo" || part == "cispo" || part == "sapo") return CheckArealLoss(entry, part);
  entry.SkipBecause(Concat("we have no part `", part, "`"));
}

void CheckTopr(NumericsCase& entry) {
  const PaddedBatch batch = ReadBatch(entry);
  if (entry.failed()) return;
  const NamedSettings settings = entry.Settings(
      "positive_weight=positive_weight negative_weight=negative_weight level:=token");
  MinibatchTotals totals = CountTotals(batch.tokens.layout);
  // ROLL divides by all rows.
  totals.num_sequences = static_cast<int64_t>(batch.tokens.layout.num_sequences());
  const Value by_mode = entry.Expected("by_loss_agg_mode");
  if (!by_mode.is_dict()) return entry.Fail("expected.by_loss_agg_mode: must be an object");
  for (const auto& [mode, expected] : by_mode.dict().entries()) {
    const Result<LossResult> result =
        EvaluateCase(entry, batch, "topr", settings, mode, totals, PaddingRule::kRoll);
    if (!entry.Check(result.status())) return;
    CompareResult(entry, *result, expected);
  }
  const Result<std::unique_ptr<PolicyLoss>> loss = MakePolicyLoss("topr", settings);
  if (!entry.Check(loss.status())) return;
  // With all weight on one token the loss is that token's term.
  std::vector<double> terms;
  ReductionWeights one;
  one.token.assign(batch.tokens.num_tokens(), 0.0);
  for (size_t token = 0; token < batch.tokens.num_tokens(); ++token) {
    one.token[token] = 1;
    const Result<LossResult> result = (*loss)->Evaluate(batch.tokens, one);
    if (!entry.Check(result.status())) return;
    terms.push_back(result->loss);
    one.token[token] = 0;
  }
  entry.ExpectAll("loss_matrix", terms, batch.padded.mask);
}

}  // namespace pace
