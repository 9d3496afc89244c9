// `numerics`: advantages, losses, corrections and optimizer steps, against the
// numbers of peers. The family is the file's base name.
#include <filesystem>

#include "conformance/case_file.h"
#include "conformance/numerics_case.h"

namespace pace {
namespace {

struct Family {
  std::string_view name;
  void (*check)(NumericsCase&);
};

constexpr Family kFamilies[] = {
    {"adamw", CheckAdamW},
    {"advantages", CheckAdvantages},
    {"decoupled_ppo", CheckDecoupledPpo},
    {"kl_penalties", CheckKlPenalty},
    {"logprob_entropy", CheckLogprobEntropy},
    {"m2po", CheckM2po},
    {"policy_loss_vanilla", CheckVanillaLoss},
    {"policy_loss_variants", CheckLossVariant},
    {"reward_shaping", CheckRewardShaping},
    {"rollout_correction", CheckRolloutCorrection},
    {"topr", CheckTopr},
    {"vcpo", CheckVcpo},
};

Result<Family> FamilyOf(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.name == stem) return family;
    known += Concat(known.empty() ? "" : ", ", family.name);
  }
  return InvalidArgument(path, ": the file's name must be a family: ", known);
}

}  // namespace

Status CheckNumerics(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) {
    PACE_ASSIGN_OR_RETURN(const Family family, FamilyOf(path));
    PACE_ASSIGN_OR_RETURN(const Value file, ReadCaseFile(path));
    PACE_ASSIGN_OR_RETURN(const ValueList cases, ListField(file, "cases", path));
    for (size_t i = 0; i < cases.size(); ++i) {
      const Value name = FieldOf(cases[i], "name");
      NumericsCase entry(cases[i], name.is_text() ? Concat(path, ": ", name.text())
                                                  : Concat(path, ": cases[", i, "]"));
      family.check(entry);
      entry.Finish(tally);
    }
  }
  return Status::Ok();
}

}  // namespace pace
