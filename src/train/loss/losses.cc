#include "train/loss/losses.h"

#include <array>

#include "train/loss/cispo.h"
#include "train/loss/clip_cov.h"
#include "train/loss/decoupled_ppo.h"
#include "train/loss/dis.h"
#include "train/loss/dppo.h"
#include "train/loss/dro.h"
#include "train/loss/geometric_mean.h"
#include "train/loss/gspo.h"
#include "train/loss/kl_cov.h"
#include "train/loss/m2po.h"
#include "train/loss/ppo.h"
#include "train/loss/reinforce.h"
#include "train/loss/sapo.h"
#include "train/loss/topr.h"

namespace pace {
namespace {

using MadeLoss = Result<std::unique_ptr<PolicyLoss>>;

template <typename Loss>
MadeLoss Make(std::string_view name, const NamedSettings& settings,
              typename Loss::Options options = {}) {
  OptionReader reader(name, settings);
  options.Read(reader);
  PACE_RETURN_IF_ERROR(reader.Finish());
  PACE_RETURN_IF_ERROR(options.Validate());
  return std::unique_ptr<PolicyLoss>(std::make_unique<Loss>(options));
}

template <typename Loss>
MadeLoss MakeDefault(std::string_view name, const NamedSettings& settings) {
  return Make<Loss>(name, settings);
}

MadeLoss MakeDapo(std::string_view name, const NamedSettings& settings) {
  return Make<PpoLoss>(name, settings, DapoOptions());
}

MadeLoss MakeGpg(std::string_view name, const NamedSettings& settings) {
  return Make<ReinforceLoss>(name, settings, {.paper_reduction = ReductionMode::kTokenMean});
}

struct Entry {
  std::string_view name;
  MadeLoss (*make)(std::string_view, const NamedSettings&);
};

// All losses, in alphabetical order.
constexpr Entry kLosses[] = {
    {"cispo", MakeDefault<CispoLoss>},
    {"clip_cov", MakeDefault<ClipCovLoss>},
    {"dapo", MakeDapo},
    {"decoupled_ppo", MakeDefault<DecoupledPpoLoss>},
    {"dis", MakeDefault<DisLoss>},
    {"dppo", MakeDefault<DppoLoss>},
    {"dro", MakeDefault<DroLoss>},
    {"geometric_mean", MakeDefault<GeometricMeanLoss>},
    {"gpg", MakeGpg},
    {"gspo", MakeDefault<GspoLoss>},
    {"kl_cov", MakeDefault<KlCovLoss>},
    {"m2po", MakeDefault<M2poLoss>},
    {"ppo", MakeDefault<PpoLoss>},
    {"reinforce", MakeDefault<ReinforceLoss>},
    {"sapo", MakeDefault<SapoLoss>},
    {"topr", MakeDefault<ToprLoss>},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kLosses)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kLosses[i].name;
  return names;
}();

Status CheckInput(bool needed, std::string_view array, std::span<const double> values,
                  size_t expected) {
  return needed ? CheckLength(array, values.size(), "positions", expected, false) : Status::Ok();
}

}  // namespace

Result<LossResult> PolicyLoss::Evaluate(const TokenBatch& batch,
                                        const ReductionWeights& weights) const {
  PACE_RETURN_IF_ERROR(batch.Validate());
  const size_t num_tokens = batch.num_tokens();
  const LossInputs needed = inputs();
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
  PACE_RETURN_IF_ERROR(Compute(batch, weights, out));
  return out;
}

Result<std::unique_ptr<PolicyLoss>> MakePolicyLoss(std::string_view name,
                                                   const NamedSettings& settings) {
  std::string known;
  for (const Entry& entry : kLosses) {
    if (entry.name == name) return entry.make(name, settings);
    known += Concat(known.empty() ? "" : ", ", entry.name);
  }
  return InvalidArgument("policy loss = ", name, ": must be one of ", known);
}

std::span<const std::string_view> PolicyLossNames() {
  return kNames;
}

}  // namespace pace
