// Settings of a run as such: its length, its batch, its supply, its pool, and
// what it writes down. Fields() documents each.
#ifndef PACE_CONFIG_RUN_OPTIONS_H_
#define PACE_CONFIG_RUN_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "config/field.h"

namespace pace {

struct RunOptions {
  int64_t seed = 1;
  int64_t num_steps = 300;
  int64_t checkpoint_every = 0;
  int64_t evaluate_every = 0;
  bool evaluate_at_start = true;

  [[nodiscard]] std::vector<Field> Fields();
};

struct BatchOptions {
  int64_t num_groups = 12;
  int64_t group_size = 12;
  int64_t num_updates = 1;
  bool shuffle = false;

  [[nodiscard]] std::vector<Field> Fields();
};

enum class Requeue { kNever, kLost, kRejected, kAll };

enum class SupplyKind {
  kThreshold,
  kQuota,
  kVersionWindow,
  kOverSampling,
  kCancelling,
  kJustInTime
};

struct SupplyOptions {
  SupplyKind policy = SupplyKind::kThreshold;
  double threshold = 8;
  int64_t bound = 4;
  double over_sampling = 1.5;
  int64_t sync_interval = 1;
  Requeue requeue = Requeue::kLost;
  int64_t max_attempts = 3;

  [[nodiscard]] std::vector<Field> Fields();

  // threshold, cancelling, just_in_time: the most credits that may be out at once,
  // (1 + threshold) * batch * sync_interval.
  int64_t MaxOutstanding(int64_t batch) const;
  // Whether the policy reads how long responses take.
  bool ReadsTimes() const { return policy == SupplyKind::kJustInTime; }
  // The most groups that may be begun and not yet trained on.
  int64_t MaxGroups(int64_t batch) const;
};

enum class DrawOrder { kCompletion, kNewest, kLowestScore };

struct PoolOptions {
  int64_t max_groups = 0;
  int64_t max_bytes = 0;
  DrawOrder draw_order = DrawOrder::kCompletion;

  [[nodiscard]] std::vector<Field> Fields();
};

// Which interrupted prefixes are rescored after a sync.
struct PrefixOptions {
  int64_t min_tokens = 32;
  int64_t max_tokens = 1024;

  [[nodiscard]] std::vector<Field> Fields();
};

enum class RecordLevel { kAuto, kMetrics, kDecisions, kFull };
enum class RecordResponses { kNone, kSample, kAll };

struct RecordOptions {
  RecordLevel level = RecordLevel::kAuto;
  RecordResponses responses = RecordResponses::kSample;

  [[nodiscard]] std::vector<Field> Fields();
  // What auto means for a run of this many responses: full up to a million.
  RecordLevel Resolve(int64_t num_responses) const;
};

}  // namespace pace

#endif  // PACE_CONFIG_RUN_OPTIONS_H_
