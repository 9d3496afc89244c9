// Advantage estimators by name, with the options of each: `train.advantage`.
// Formulas and sources stand in train/advantage/NAME.cc.
//
// Thread-safety: plain data.
#ifndef PACE_CONFIG_ADVANTAGE_OPTIONS_H_
#define PACE_CONFIG_ADVANTAGE_OPTIONS_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

struct GaeOptions {
  double gamma = 1;
  double lambda = 1;
  double length_factor = 0;
  std::optional<double> returns_lambda = std::nullopt;
  bool standardize = true;
  bool compat = false;

  [[nodiscard]] std::vector<Field> Fields();
};

struct GpgOptions {
  double normalizer = 1;

  [[nodiscard]] std::vector<Field> Fields();
};

struct GrpoOptions {
  bool standardize = true;
  double epsilon = 1e-6;

  [[nodiscard]] std::vector<Field> Fields();
};

struct ReinforcePlusPlusOptions {
  double gamma = 1;
  bool cross_masked = true;
  bool compat = false;

  [[nodiscard]] std::vector<Field> Fields();
};

struct ReinforceBaselineOptions {
  bool compat = false;

  [[nodiscard]] std::vector<Field> Fields();
};

struct RlooOptions {
  enum class Single { kReward, kZero };

  Single single = Single::kReward;

  [[nodiscard]] std::vector<Field> Fields();
};

// In alphabetical order, as AdvantageEstimatorNames().
enum class AdvantageKind {
  kDrGrpo,
  kGae,
  kGpg,
  kGrpo,
  kOpo,
  kPassAtK,
  kReinforcePlusPlus,
  kReinforceBaseline,
  kRemax,
  kRloo,
};
std::span<const std::string_view> AdvantageEstimatorNames();

struct AdvantageOptions {
  AdvantageKind kind = AdvantageKind::kGrpo;
  // Only the options of `kind` are read.
  GrpoOptions dr_grpo = {.standardize = false};
  GaeOptions gae = {};
  GpgOptions gpg = {};
  GrpoOptions grpo = {};
  GrpoOptions pass_at_k = {};
  ReinforcePlusPlusOptions reinforce_plus_plus = {};
  ReinforceBaselineOptions reinforce_baseline = {};
  RlooOptions rloo = {};

  // Of `kind`.
  [[nodiscard]] std::vector<Field> Fields();
  // The message starts with the estimator's name.
  [[nodiscard]] Status Validate() const;
};

// An unknown name or option is an error that names the nearest.
Result<AdvantageOptions> AdvantageNamed(std::string_view name, const NamedSettings& settings = {});

}  // namespace pace

#endif  // PACE_CONFIG_ADVANTAGE_OPTIONS_H_
