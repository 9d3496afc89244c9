// Families policy_loss_vanilla and policy_loss_variants: verl's losses.
#include "conformance/case_file.h"
#include "conformance/numerics_batch.h"
#include "conformance/numerics_case.h"
#include "train/correction/corrections.h"
#include "train/loss/losses.h"

namespace pace {
namespace {

// How verl's registry names become ours.
struct Variant {
  std::string_view theirs;
  std::string_view ours;
  std::string_view settings;  // as NumericsCase::Settings reads them
  // The reduction that the peer takes whatever is configured; empty: as configured.
  std::string_view reduction = {};
  // Whether rows without a policy token count in a mean over sequences.
  bool counts_empty_rows = false;
};

constexpr const char* kClip = "clip_low=clip_ratio_low clip_high=clip_ratio_high";
constexpr Variant kVariants[] = {
    {"gspo", "gspo", kClip, "seq-mean-token-mean"},
    {"cispo", "cispo", kClip},
    {"geo_mean", "geometric_mean", kClip, "seq-mean-token-mean", true},
    {"sapo", "sapo", "tau_positive=tau_pos tau_negative=tau_neg", "seq-mean-token-mean"},
    {"clip_cov", "clip_cov",
     "clip_low=clip_ratio_low clip_high=clip_ratio_high fraction=clip_cov_ratio "
     "cov_low=clip_cov_lb cov_high=clip_cov_ub"},
    {"kl_cov", "kl_cov", "fraction=kl_cov_ratio kl_coefficient=ppo_kl_coef"},
    {"dppo_tv", "dppo",
     "divergence_low=clip_ratio_low divergence_high=clip_ratio_high max_ratio=clip_ratio_c "
     "divergence:=tv"},
    {"dppo_kl", "dppo",
     "divergence_low=clip_ratio_low divergence_high=clip_ratio_high max_ratio=clip_ratio_c "
     "divergence:=kl"},
    {"dro", "dro", "beta=dro_beta"},
    {"gpg", "gpg", ""},
    {"reinforce", "reinforce", ""},
    {"vanilla", "ppo", kPpoSettings},
};

void CompareLossMetrics(NumericsCase& entry, const MetricList& metrics, const Value& theirs,
                        const std::string& prefix) {
  entry.CompareMetric(metrics, "train/clip_fraction", FieldOf(theirs, prefix + "pg_clipfrac"));
  entry.CompareMetric(metrics, "train/clip_fraction_lower",
                      FieldOf(theirs, prefix + "pg_clipfrac_lower"));
  // One peer reports the mean of |log r| under the name of the mean of -log r.
  const bool absolute = FindMetric(metrics, "train/kl_abs") != nullptr;
  entry.CompareMetric(metrics, absolute ? "train/kl_abs" : "train/kl",
                      FieldOf(theirs, prefix + "ppo_kl"));
}

// verl's bypass mode: corrections from the policy being trained, then a loss.
void CheckBypass(NumericsCase& entry, PaddedBatch& batch) {
  const Value correction_config = entry.Config("rollout_correction");
  const Result<CorrectionOptions> options =
      ReadCorrectionOptions(correction_config, entry.has_quirk());
  if (!entry.Check(options.status())) return;
  const Result<Correction> correction =
      CorrectRollout(batch.tokens.layout, batch.logprobs, batch.rollout_logprobs, *options);
  if (!entry.Check(correction.status())) return;
  batch.padded.mask = correction->mask;
  batch.Bind();
  const Value loss_type = FieldOf(correction_config, "loss_type");
  const bool reinforce = loss_type.is_text() && loss_type.text() == "reinforce";
  // The clipped ratio corrects already: only REINFORCE takes the weights.
  if (reinforce) batch.tokens.importance_weights = correction->weights;
  const Result<LossResult> result = EvaluateCase(
      entry, batch, reinforce ? "reinforce" : "ppo",
      reinforce ? NamedSettings{} : entry.Settings(kPpoSettings), entry.ConfigText("loss_agg_mode"),
      CountTotals(batch.tokens.layout), PaddingRule::kVerl);
  if (!entry.Check(result.status())) return;
  CompareResult(entry, *result);
  const Value metrics = entry.Expected("metrics");
  CompareLossMetrics(entry, result->metrics, metrics, "actor/");
  CompareCorrectionMetrics(entry, correction->metrics, *options, metrics);
}

}  // namespace

void CheckVanillaLoss(NumericsCase& entry) {
  const PaddedBatch batch = ReadBatch(entry);
  if (entry.failed()) return;
  const Value by_mode = entry.Expected("by_loss_agg_mode");
  if (!by_mode.is_dict()) return entry.Fail("expected.by_loss_agg_mode: must be an object");
  for (const auto& [mode, expected] : by_mode.dict().entries()) {
    const Result<LossResult> result =
        EvaluateCase(entry, batch, "ppo", entry.Settings(kPpoSettings), mode,
                     CountTotals(batch.tokens.layout), PaddingRule::kVerl);
    if (!entry.Check(result.status())) return;
    CompareResult(entry, *result, expected);
    for (const char* name : {"pg_clipfrac", "pg_clipfrac_lower", "ppo_kl"}) {
      ValueDict theirs;
      theirs.Put(name, entry.Expected(name));
      CompareLossMetrics(entry, result->metrics, Value::MakeDict(theirs), "");
    }
  }
}

void CheckLossVariant(NumericsCase& entry) {
  PaddedBatch batch = ReadBatch(entry);
  if (entry.failed()) return;
  const std::string algorithm = entry.ConfigText("algorithm");
  if (algorithm == "bypass_mode") return CheckBypass(entry, batch);
  for (const Variant& variant : kVariants) {
    if (variant.theirs != algorithm) continue;
    MinibatchTotals totals = CountTotals(batch.tokens.layout);
    if (variant.counts_empty_rows) {
      totals.num_sequences = static_cast<int64_t>(batch.tokens.layout.num_sequences());
    }
    const std::string mode(variant.reduction.empty() ? entry.ConfigText("loss_agg_mode")
                                                     : std::string(variant.reduction));
    const Result<LossResult> result =
        EvaluateCase(entry, batch, variant.ours, entry.Settings(variant.settings), mode, totals,
                     PaddingRule::kVerl);
    if (!entry.Check(result.status())) return;
    CompareResult(entry, *result);
    return CompareLossMetrics(entry, result->metrics, entry.Expected("metrics"), "actor/");
  }
  entry.SkipBecause(Concat("we have no loss `", algorithm, "`"));
}

}  // namespace pace
