#include "train/loss/losses.h"

#include "core/check.h"

namespace pace {
namespace {

PolicyLoss Make(const LossOptions& options) {
  switch (options.kind) {
    case LossKind::kCispo:
      return CispoLoss(options.cispo);
    case LossKind::kClipCov:
      return ClipCovLoss(options.clip_cov);
    case LossKind::kDapo:
      return PpoLoss(options.dapo);
    case LossKind::kDecoupledPpo:
      return DecoupledPpoLoss(options.decoupled_ppo);
    case LossKind::kDis:
      return DisLoss(options.dis);
    case LossKind::kDppo:
      return DppoLoss(options.dppo);
    case LossKind::kDro:
      return DroLoss(options.dro);
    case LossKind::kGeometricMean:
      return GeometricMeanLoss(options.geometric_mean);
    case LossKind::kGpg:
      return ReinforceLoss(ReductionMode::kTokenMean);
    case LossKind::kGspo:
      return GspoLoss(options.gspo);
    case LossKind::kKlCov:
      return KlCovLoss(options.kl_cov);
    case LossKind::kM2po:
      return M2poLoss(options.m2po);
    case LossKind::kPpo:
      return PpoLoss(options.ppo);
    case LossKind::kReinforce:
      return ReinforceLoss(ReductionMode::kSequenceMeanTokenSum);
    case LossKind::kSapo:
      return SapoLoss(options.sapo);
    case LossKind::kTopr:
      return ToprLoss(options.topr);
  }
  PACE_CHECK(false, "no such loss");
}

Status CheckInput(bool needed, std::string_view array, std::span<const double> values,
                  size_t expected) {
  return needed ? CheckLength(array, values.size(), "positions", expected, false) : Status::Ok();
}

}  // namespace

Result<LossResult> PolicyLoss::Evaluate(const TokenBatch& batch,
                                        const ReductionWeights& weights) const {
  PACE_RETURN_IF_ERROR(batch.Validate());
  const size_t num_tokens = batch.num_tokens();
  const LossInputs& needed = inputs();
  PACE_RETURN_IF_ERROR(
      CheckLength("reduction weights", weights.token.size(), "tokens", num_tokens, false));
  PACE_RETURN_IF_ERROR(
      CheckInput(needed.rollout, "rollout_logprobs", batch.rollout_logprobs, num_tokens));
  PACE_RETURN_IF_ERROR(
      CheckInput(needed.proximal, "proximal_logprobs", batch.proximal_logprobs, num_tokens));
  PACE_RETURN_IF_ERROR(
      CheckInput(needed.rewards, "rewards", batch.rewards, batch.layout.num_sequences()));
  const bool by_rollout = batch.reference == RatioReference::kRollout;
  PACE_RETURN_IF_ERROR(CheckInput(
      needed.reference,
      by_rollout ? "rollout_logprobs (the reference)" : "proximal_logprobs (the reference)",
      batch.reference_logprobs(), num_tokens));
  LossResult out;
  out.gradient.assign(num_tokens, 0.0);
  PACE_RETURN_IF_ERROR(compute_(batch, weights, out));
  return out;
}

Result<std::unique_ptr<PolicyLoss>> MakePolicyLoss(const LossOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  return std::make_unique<PolicyLoss>(Make(options));
}

Result<std::unique_ptr<PolicyLoss>> MakePolicyLoss(std::string_view name,
                                                   const NamedSettings& settings) {
  PACE_ASSIGN_OR_RETURN(const LossOptions options, LossNamed(name, settings));
  return MakePolicyLoss(options);
}

}  // namespace pace
