// Settings of a run as such: its length, its batch, its supply, its pool, and
// what it writes down.
#ifndef PACE_CONFIG_RUN_OPTIONS_H_
#define PACE_CONFIG_RUN_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "config/field.h"

namespace pace {

struct RunOptions {
  int64_t seed = 1;
  int64_t num_steps = 300;
  // Steps between two checkpoints, and between two evaluations; 0 = none.
  int64_t checkpoint_every = 0;
  int64_t evaluate_every = 0;

  [[nodiscard]] std::vector<Field> Fields();
};

struct BatchOptions {
  int64_t num_groups = 12;  // drawn and trained on in one step
  int64_t group_size = 12;  // responses to one prompt
  int64_t num_updates = 1;  // optimizer updates (minibatches) per step

  [[nodiscard]] std::vector<Field> Fields();
};

enum class Requeue { kNever, kLost, kRejected, kAll };

enum class SupplyKind { kThreshold, kQuota, kVersionWindow, kOverSampling, kCancelling };

struct SupplyOptions {
  // What bounds the groups that are begun: docs/policies.md, a note each.
  SupplyKind policy = SupplyKind::kThreshold;

  // Batches of groups that may be outstanding beyond the one being trained.
  // 0 = strictly on-policy. Larger: fewer rollout stalls, older data.
  double threshold = 8;

  // quota, version_window, cancelling: steps that data may be behind.
  int64_t bound = 4;

  // over_sampling: batches of groups begun for one batch.
  double over_sampling = 1.5;

  // Steps between two weight syncs. Larger: cheaper syncs, older data.
  int64_t sync_interval = 1;

  // Which prompts come back when their group did not train.
  Requeue requeue = Requeue::kLost;
  // A prompt is dispatched at most this often.
  int64_t max_attempts = 3;

  [[nodiscard]] std::vector<Field> Fields();

  // threshold, cancelling: the most credits that may be out at once,
  // (1 + threshold) * batch * sync_interval.
  int64_t MaxOutstanding(int64_t batch) const;
  // The most groups that may be begun and not yet trained on.
  int64_t MaxGroups(int64_t batch) const;
};

enum class DrawOrder { kCompletion, kNewest, kLowestScore };

struct PoolOptions {
  // Bounds on what waits in the pool; 0 = none. A full pool evicts the group
  // with the highest score; it never blocks a finished group.
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
  // Responses that responses.jsonl holds as text: a few of a step and of an
  // evaluation, or every response that was drawn or evaluated.
  RecordResponses responses = RecordResponses::kSample;

  [[nodiscard]] std::vector<Field> Fields();
  // What auto means for a run of this many responses: full up to a million.
  RecordLevel Resolve(int64_t num_responses) const;
};

}  // namespace pace

#endif  // PACE_CONFIG_RUN_OPTIONS_H_
