// Policy losses by name, with the options of each: `train.loss`.
//
// Defaults, bounds and documentation of an option stand in Fields(), which
// `pace config --keys` prints; formulas and sources in train/loss/NAME.cc.
//
//   Result<LossOptions> loss = LossNamed("ppo", {{"clip_high", "0.28"}});
//
// Thread-safety: plain data.
#ifndef PACE_CONFIG_LOSS_OPTIONS_H_
#define PACE_CONFIG_LOSS_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/correction_options.h"
#include "config/field.h"
#include "config/objective.h"
#include "core/status.h"

namespace pace {

struct CispoOptions {
  double clip_low = 10;
  double clip_high = 0.2;
  double max_log_ratio = 20;
  std::vector<Field> Fields();
};

struct ClipCovOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  double fraction = 2e-4;
  double cov_low = 1;
  double cov_high = 5;
  int64_t seed = 0;
  std::vector<Field> Fields();
};

struct DecoupledPpoOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  std::optional<double> dual_clip = std::nullopt;
  RatioLevel level = RatioLevel::kToken;
  bool weigh_behavior = true;
  std::optional<double> m2_threshold = std::nullopt;
  BehaviorOptions behavior = {};
  std::vector<Field> Fields();
};

struct DisOptions {
  double band_low = 0.3;
  double band_high = 5.0;
  std::vector<Field> Fields();
};

struct DppoOptions {
  enum class Divergence { kTotalVariation, kKl };

  Divergence divergence = Divergence::kTotalVariation;
  double divergence_low = 0.2;
  double divergence_high = 0.2;
  double max_ratio = 20;
  double max_log_ratio = 20;
  std::vector<Field> Fields();
};

struct DroOptions {
  double beta = 0.1;
  std::vector<Field> Fields();
};

struct GeometricMeanOptions {
  double clip_low = 0.4;
  double clip_high = 0.4;
  std::vector<Field> Fields();
};

struct GspoOptions {
  double clip_low = 3e-4;
  double clip_high = 4e-4;
  double max_log_ratio = 10;
  std::vector<Field> Fields();
};

struct KlCovOptions {
  double fraction = 2e-4;
  double kl_coefficient = 1;
  std::vector<Field> Fields();
};

struct M2poOptions {
  enum class Rule { kPaper, kOfficial };

  Rule rule = Rule::kPaper;
  double budget = 0.04;
  LossScope scope = LossScope::kMinibatch;  // or kMicroBatch
  std::optional<double> min_clip_low = std::nullopt;
  std::optional<double> min_clip_high = std::nullopt;
  bool compat = false;
  std::vector<Field> Fields();
};

struct PpoOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  std::optional<double> dual_clip = std::nullopt;
  double max_log_ratio = 20;
  std::vector<Field> Fields();
};

struct SapoOptions {
  double tau_positive = 1.0;
  double tau_negative = 1.05;
  double max_log_ratio = 20;
  std::vector<Field> Fields();
};

struct ToprOptions {
  RatioLevel level = RatioLevel::kSequence;
  double positive_weight = 1;
  double negative_weight = 1;
  std::vector<Field> Fields();
};

// In alphabetical order, as PolicyLossNames().
enum class LossKind {
  kCispo,
  kClipCov,
  kDapo,
  kDecoupledPpo,
  kDis,
  kDppo,
  kDro,
  kGeometricMean,
  kGpg,
  kGspo,
  kKlCov,
  kM2po,
  kPpo,
  kReinforce,
  kSapo,
  kTopr
};
std::span<const std::string_view> PolicyLossNames();

struct LossOptions {
  LossKind kind = LossKind::kPpo;
  // Only the options of `kind` are read.
  CispoOptions cispo = {};
  ClipCovOptions clip_cov = {};
  PpoOptions dapo = {.clip_high = 0.28};
  DecoupledPpoOptions decoupled_ppo = {};
  DisOptions dis = {};
  DppoOptions dppo = {};
  DroOptions dro = {};
  GeometricMeanOptions geometric_mean = {};
  GspoOptions gspo = {};
  KlCovOptions kl_cov = {};
  M2poOptions m2po = {};
  PpoOptions ppo = {};
  SapoOptions sapo = {};
  ToprOptions topr = {};

  // Of `kind`.
  [[nodiscard]] std::vector<Field> Fields();
  // Bounds, and rules that span options. The message starts with the loss's name.
  [[nodiscard]] Status Validate() const;
};

// An unknown name or option is an error that names the nearest.
Result<LossOptions> LossNamed(std::string_view name, const NamedSettings& settings = {});

}  // namespace pace

#endif  // PACE_CONFIG_LOSS_OPTIONS_H_
