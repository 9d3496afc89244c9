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

#include "config/field.h"
#include "core/status.h"

namespace pace {

// What the trained policy's probability is divided by: the log-probs recorded when
// the tokens were sampled, or recomputed before the step's first update.
enum class RatioReference { kRollout, kProximal };

// Whether a ratio is a token's own or that of its whole sequence.
enum class RatioLevel { kToken, kSequence };

// How the losses of tokens become one number (train/reduction.h).
enum class ReductionMode {
  kTokenMean,
  kTokenSum,
  kSequenceMeanTokenSum,
  kSequenceMeanTokenMean,
  kSequenceMeanTokenSumNorm,
};
// In that order, after "auto".
std::span<const std::string_view> ReductionNames();

// How much of a minibatch one evaluation of a loss must see.
enum class LossScope {
  // Each sequence stands for itself: any split gives the same objective.
  kSequence,
  // Tokens of the whole minibatch are compared with one another: evaluate it
  // at once and hand each micro-batch its part of the gradient.
  kMinibatch,
  // As kMinibatch, but compared within each micro-batch, as a peer does: the
  // objective then depends on the split.
  kMicroBatch,
};

struct CispoOptions {
  double clip_low = 10;
  double clip_high = 0.2;
  double max_log_ratio = 20;

  [[nodiscard]] std::vector<Field> Fields();
};

struct ClipCovOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  double fraction = 2e-4;
  double cov_low = 1;
  double cov_high = 5;
  int64_t seed = 0;

  [[nodiscard]] std::vector<Field> Fields();
};

// The weight of data by the policy that sampled it (train/correction).
struct BehaviorOptions {
  enum class Action { kMask, kClamp };
  enum class Measure { kRatio, kK1, kK2, kK3 };
  enum class Aggregation { kMean, kSum, kMax };

  RatioLevel level = RatioLevel::kToken;
  Action action = Action::kMask;
  Measure measure = Measure::kRatio;
  Aggregation aggregation = Aggregation::kMean;
  double upper = 5;
  std::optional<double> lower = std::nullopt;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

struct DecoupledPpoOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  std::optional<double> dual_clip = std::nullopt;
  RatioLevel level = RatioLevel::kToken;
  bool weigh_behavior = true;
  std::optional<double> m2_threshold = std::nullopt;
  BehaviorOptions behavior = {};

  [[nodiscard]] std::vector<Field> Fields();
};

struct DisOptions {
  double band_low = 0.3;
  double band_high = 5.0;

  [[nodiscard]] std::vector<Field> Fields();
};

struct DppoOptions {
  enum class Divergence { kTotalVariation, kKl };

  Divergence divergence = Divergence::kTotalVariation;
  double divergence_low = 0.2;
  double divergence_high = 0.2;
  double max_ratio = 20;
  double max_log_ratio = 20;

  [[nodiscard]] std::vector<Field> Fields();
};

struct DroOptions {
  double beta = 0.1;

  [[nodiscard]] std::vector<Field> Fields();
};

struct GeometricMeanOptions {
  double clip_low = 0.4;
  double clip_high = 0.4;

  [[nodiscard]] std::vector<Field> Fields();
};

struct GspoOptions {
  double clip_low = 3e-4;
  double clip_high = 4e-4;
  double max_log_ratio = 10;

  [[nodiscard]] std::vector<Field> Fields();
};

struct KlCovOptions {
  double fraction = 2e-4;
  double kl_coefficient = 1;

  [[nodiscard]] std::vector<Field> Fields();
};

struct M2poOptions {
  enum class Rule { kPaper, kOfficial };

  Rule rule = Rule::kPaper;
  double budget = 0.04;
  LossScope scope = LossScope::kMinibatch;  // or kMicroBatch
  std::optional<double> min_clip_low = std::nullopt;
  std::optional<double> min_clip_high = std::nullopt;
  bool compat = false;

  [[nodiscard]] std::vector<Field> Fields();
};

struct PpoOptions {
  double clip_low = 0.2;
  double clip_high = 0.2;
  std::optional<double> dual_clip = std::nullopt;
  double max_log_ratio = 20;

  [[nodiscard]] std::vector<Field> Fields();
};

struct SapoOptions {
  double tau_positive = 1.0;
  double tau_negative = 1.05;
  double max_log_ratio = 20;

  [[nodiscard]] std::vector<Field> Fields();
};

struct ToprOptions {
  RatioLevel level = RatioLevel::kSequence;
  double positive_weight = 1;
  double negative_weight = 1;

  [[nodiscard]] std::vector<Field> Fields();
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
  kTopr,
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
