// Settings of admission: which finished groups a step may train on.
#ifndef PACE_CONFIG_ADMISSION_OPTIONS_H_
#define PACE_CONFIG_ADMISSION_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"

namespace pace {

enum class AdmissionKind { kPace, kStaleK, kAcceptAll, kOldestToken, kPaceFair, kStartWindow };
enum class GenerationWeight { kPrefix, kOne, kZero };
enum class TieRule { kStrict, kFractional };
enum class WeightScope { kGroup, kMember };
enum class WaitMeasure { kAuto, kAll, kPool };
enum class StaleKMeasure { kMean, kMaxMember };

struct AdmissionOptions {
  AdmissionKind policy = AdmissionKind::kPace;

  // --- pace: budget ---
  // N_tar, the occupancy above which the pool asks for rejections; auto = the
  // batch. Larger: fewer waits for data, older data.
  std::optional<int64_t> target_occupancy;
  // Weight of the past in the moving average of the rejection rate.
  double beta = 0.9;
  // No step rejects a larger share of what recent scores predict.
  double max_budget = 0.9;
  // Cap the budget at 1 - batch/N_j, so that rejection never takes what this
  // batch needs from the pool.
  bool reserve_batch = false;

  // --- pace: score ---
  double wait_weight = 1;  // w1
  // Waiting as defined, for the slowest member of the group too; or in the pool
  // alone. auto = all under pace, pool under pace_fair.
  WaitMeasure wait_measure = WaitMeasure::kAuto;
  // What generation staleness counts for: F of the prefix score, 1, or 0.
  GenerationWeight generation_weight = GenerationWeight::kPrefix;
  double gamma = 4;            // sharpness of F
  double unscored_weight = 1;  // without a prefix score: no observation, no discount
  WeightScope weight_scope = WeightScope::kGroup;

  // --- pace: cutoff ---
  // Groups remembered in each window; auto = max(512, 32 * batch).
  std::optional<int64_t> window;
  // Fewer scores than this: admit everything.
  int64_t min_observations = 32;
  TieRule ties = TieRule::kStrict;

  // --- pace_fair ---
  // Strata of response length; groups are ranked among their like.
  int64_t num_strata = 8;

  // --- stale_k, oldest_token, start_window ---
  double k = 8;
  StaleKMeasure k_measure = StaleKMeasure::kMean;

  // --- accept_all ---
  // Compute pace's scores and windows without filtering, to compare runs.
  bool observe = false;

  [[nodiscard]] std::vector<Field> Fields();

  // N_tar and the window size that a run with this batch uses.
  int64_t TargetOccupancy(int64_t batch) const { return target_occupancy.value_or(batch); }
  int64_t Window(int64_t batch) const;
  // Whether only waiting in the pool counts.
  bool CountsPoolOnly() const {
    return wait_measure == WaitMeasure::kPool ||
           (wait_measure == WaitMeasure::kAuto && policy == AdmissionKind::kPaceFair);
  }
  // Whether effective staleness is computed, to filter by or to look at.
  bool ComputesScores() const;
  // Whether anything reads prefix scores; if not, nobody need compute them.
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

}  // namespace pace

#endif  // PACE_CONFIG_ADMISSION_OPTIONS_H_
