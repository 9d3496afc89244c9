// Settings of admission: which finished groups a step may train on.
#ifndef PACE_CONFIG_ADMISSION_OPTIONS_H_
#define PACE_CONFIG_ADMISSION_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

enum class AdmissionKind {
  kPace,
  kStaleK,
  kAcceptAll,
  kOldestToken,
  kPaceFair,
  kStartWindow,
  kPython,  // a class of the user's: python_class
};
enum class GenerationWeight { kPrefix, kOne, kZero };
enum class CutoffRule { kWindow, kPool };
enum class TieRule { kStrict, kFractional };
enum class WeightScope { kGroup, kMember };
enum class WaitMeasure { kAuto, kAll, kPool };
enum class StaleKMeasure { kMean, kMaxMember };

struct AdmissionOptions {
  AdmissionKind policy = AdmissionKind::kPace;

  // --- pace: budget ---
  std::optional<int64_t> target_occupancy;
  double target_batches = 1;
  double beta = 0.9;
  double max_budget = 0.9;
  bool reserve_batch = false;

  // --- pace: score ---
  double wait_weight = 1;
  WaitMeasure wait_measure = WaitMeasure::kAuto;
  GenerationWeight generation_weight = GenerationWeight::kPrefix;
  double gamma = 4;
  double unscored_weight = 1;
  WeightScope weight_scope = WeightScope::kGroup;

  // --- pace: cutoff ---
  CutoffRule cutoff = CutoffRule::kWindow;
  std::optional<int64_t> window;
  int64_t min_observations = 32;
  TieRule ties = TieRule::kStrict;

  // --- pace_fair ---
  int64_t num_strata = 8;

  // --- stale_k, oldest_token, start_window ---
  double k = 8;
  StaleKMeasure k_measure = StaleKMeasure::kMean;

  // --- accept_all, python ---
  bool observe = false;

  // --- python:FILE:CLASS ---
  std::string python_class;  // the whole text; empty for built-in policies
  std::string python = "python3";
  double timeout = 30;
  double start_timeout = 60;

  [[nodiscard]] std::vector<Field> Fields();

  // N_tar and the window size that a run with this batch uses.
  int64_t TargetOccupancy(int64_t batch) const {
    return target_occupancy.value_or(
        static_cast<int64_t>(target_batches * static_cast<double>(batch)));
  }
  int64_t Window(int64_t batch) const;
  // Whether only waiting in the pool counts.
  bool CountsPoolOnly() const {
    return wait_measure == WaitMeasure::kPool ||
           (wait_measure == WaitMeasure::kAuto && policy == AdmissionKind::kPaceFair);
  }
  // Whether effective staleness is computed, to filter by or to look at.
  bool ComputesScores() const;
  // Whether anything reads prefix scores; if not, engines need not compute them.
  bool UsesPrefixScores() const;
};

// effective, raw, generation, waiting: names for two of the fields above.
struct AdmissionVariant {
  double wait_weight;
  GenerationWeight generation_weight;
};
std::optional<AdmissionVariant> VariantFromName(std::string_view name);
// "effective" and so on for policy pace, else the policy's name.
std::string MethodName(const AdmissionOptions& options);

// Admission options from JSON: `{"config": {"policy": "pace", ...}}`, the form that stands
// beside an admission trace. Strict: types are JSON's, an unknown or repeated key is an
// error. `name` stands in front of errors.
Result<AdmissionOptions> AdmissionFromJson(std::string_view json, const std::string& name);

}  // namespace pace

#endif  // PACE_CONFIG_ADMISSION_OPTIONS_H_
