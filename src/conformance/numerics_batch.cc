#include "conformance/numerics_batch.h"

#include "conformance/case_file.h"

namespace pace {

void PaddedBatch::Bind() {
  tokens.layout = padded.layout();
  tokens.logprobs = logprobs;
  tokens.rollout_logprobs = rollout_logprobs;
  tokens.proximal_logprobs = proximal_logprobs;
  tokens.advantages = advantages;
  tokens.importance_weights = importance_weights;
  tokens.rewards = rewards;
}

PaddedBatch ReadBatch(NumericsCase& entry) {
  PaddedBatch batch;
  batch.padded = ReadLayout(entry);
  batch.logprobs = entry.Numbers("log_prob");
  batch.rollout_logprobs = entry.Numbers("old_log_prob");
  batch.proximal_logprobs = entry.OptionalNumbers("proximal_log_prob");
  batch.advantages = entry.Numbers("advantages");
  batch.importance_weights = entry.OptionalNumbers("rollout_is_weights");
  batch.rewards = entry.OptionalNumbers("scores");
  batch.Bind();
  const Status status = batch.tokens.Validate();
  if (!status.ok()) entry.Fail("inputs: " + status.message());
  return batch;
}

Result<LossResult> EvaluateCase(const NumericsCase& entry, const PaddedBatch& batch,
                                std::string_view loss, const NamedSettings& settings,
                                std::string_view mode, const MinibatchTotals& totals,
                                PaddingRule padding) {
  const std::optional<ReductionMode> reduction = ReductionModeFromName(mode);
  if (!reduction.has_value()) return InvalidArgument("there is no reduction `", mode, "`");
  ReductionOptions options{.mode = *reduction, .horizon = static_cast<double>(batch.padded.width)};
  if (entry.has_quirk()) options.padding = padding;
  MinibatchTotals counted = totals;
  const Value global = entry.Config("global_batch_info");
  if (const auto number = NumberOf(FieldOf(global, "batch_num_tokens"))) {
    counted.num_tokens = static_cast<int64_t>(*number);
  }
  if (const auto number = NumberOf(FieldOf(global, "global_batch_size"))) {
    counted.num_sequences = static_cast<int64_t>(*number);
  }
  options.scale = NumberOf(FieldOf(global, "dp_size")).value_or(options.scale);
  options.horizon = NumberOf(FieldOf(global, "loss_scale_factor")).value_or(options.horizon);
  PACE_ASSIGN_OR_RETURN(const ReductionWeights weights,
                        WeighTokens(batch.tokens.layout, counted, options));
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<PolicyLoss> made, MakePolicyLoss(loss, settings));
  return made->Evaluate(batch.tokens, weights);
}

void CompareResult(NumericsCase& entry, const LossResult& result, const Value& expected) {
  entry.Compare("loss", result.loss, FieldOf(expected, "loss"));
  entry.CompareAll("grad_log_prob", result.gradient, FieldOf(expected, "grad_log_prob"));
}

void CompareResult(NumericsCase& entry, const LossResult& result) {
  entry.Expect("loss", result.loss);
  entry.ExpectAll("grad_log_prob", result.gradient);
}

}  // namespace pace
