// Corrections for data that another policy sampled, with their options:
// `train.correction`, `train.ess_learning_rate`, `train.opob`. Formulas and sources
// stand in train/correction.
//
// Thread-safety: plain data.
#ifndef PACE_CONFIG_CORRECTION_OPTIONS_H_
#define PACE_CONFIG_CORRECTION_OPTIONS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "config/objective.h"
#include "core/status.h"

namespace pace {

struct ImportanceOptions {
  RatioLevel level = RatioLevel::kToken;
  double upper = 2;
  // None: TIS. Some: IcePop.
  std::optional<double> lower = std::nullopt;
  bool normalize = false;

  [[nodiscard]] Status Validate() const;
};

struct RejectionCriterion {
  enum class Level { kToken, kSequenceSum, kSequenceMean, kSequenceMax };
  enum class Measure { kK1, kK2, kK3 };

  Level level = Level::kToken;
  Measure measure = Measure::kK1;
  double upper = 2;
  // k1 alone; none: 1 / upper.
  std::optional<double> lower = std::nullopt;

  [[nodiscard]] Status Validate() const;
};

// "token_k1", "seq_max_k3"; nothing for another text (there is no seq_max_k1).
std::optional<RejectionCriterion> RejectionCriterionFromName(std::string_view name);
std::string NameOf(const RejectionCriterion& criterion);

enum class CorrectionKind { kNone, kTis, kIcePop };
std::span<const std::string_view> CorrectionNames();

struct CorrectionOptions {
  enum class K1Bounds { kRolloutOverTrain, kTrainOverRollout };

  std::optional<ImportanceOptions> importance = std::nullopt;
  std::vector<RejectionCriterion> rejection = {};  // all must be met
  K1Bounds k1_bounds = K1Bounds::kRolloutOverTrain;
  bool compat = false;

  // With the default options of a kind, and which kind it is.
  static CorrectionOptions Of(CorrectionKind kind);
  [[nodiscard]] CorrectionKind kind() const;

  // Whether there is anything to correct; if not, the train policy's log-probs
  // need not be computed for it.
  bool active() const { return importance.has_value() || !rejection.empty(); }
  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

// An unknown name or option is an error that names the nearest.
Result<CorrectionOptions> CorrectionNamed(std::string_view name,
                                          const NamedSettings& settings = {});

// Decoupled PPO's weights of tokens.
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

// VCPO's learning rate.
struct EssLearningRateOptions {
  enum class Rule { kSqrt, kLinear };

  Rule rule = Rule::kSqrt;
  double base_ratio = 1;
  std::optional<double> max_weight = std::nullopt;
  bool bounded = false;
  bool compat = false;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

// VCPO's baseline.
struct OpobOptions {
  enum class Scope { kGroup, kMinibatch };
  enum class Aggregation { kMean, kMedian, kWinsorizedMean };

  Scope scope = Scope::kGroup;
  Aggregation aggregation = Aggregation::kMean;
  bool use_weights = true;
  std::optional<double> max_weight = std::nullopt;
  bool normalize_by_length = false;
  bool standardize = false;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

}  // namespace pace

#endif  // PACE_CONFIG_CORRECTION_OPTIONS_H_
