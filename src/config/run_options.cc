#include "config/run_options.h"

#include <array>
#include <cmath>
#include <string_view>

#include "core/check.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 6> kSupplyNames = {
    "threshold", "quota", "version_window", "over_sampling", "cancelling", "just_in_time"};
constexpr std::array<std::string_view, 4> kRequeueNames = {"never", "lost", "rejected", "all"};
constexpr std::array<std::string_view, 3> kDrawOrderNames = {"completion", "newest",
                                                             "lowest_score"};
constexpr std::array<std::string_view, 4> kRecordNames = {"auto", "metrics", "decisions", "full"};

constexpr std::array<std::string_view, 3> kResponseNames = {"none", "sample", "all"};

constexpr int64_t kFullRecordResponses = 1000000;

}  // namespace

std::vector<Field> RunOptions::Fields() {
  return {
      Field::Int("seed", seed, "Every random number of the run follows from it.").AtLeast(0),
      Field::Int("num_steps", num_steps, "Training steps to run.").AtLeast(1).AtMost(1e9),
      Field::Int("checkpoint_every", checkpoint_every, "Steps between checkpoints; 0 = none.")
          .AtLeast(0),
      Field::Int("evaluate_every", evaluate_every, "Steps between evaluations; 0 = none.")
          .AtLeast(0),
      Field::Bool("evaluate_at_start", evaluate_at_start,
                  "Evaluate before the first step too, where there are evaluations."),
  };
}

std::vector<Field> BatchOptions::Fields() {
  return {
      Field::Int("num_groups", num_groups, "Groups drawn and trained on in one step.")
          .AtLeast(1)
          .AtMost(1e6),
      Field::Int("group_size", group_size, "Responses to one prompt.").AtLeast(1).AtMost(65536),
      Field::Int("num_updates", num_updates, "Optimizer updates (minibatches) per step.")
          .AtLeast(1),
      Field::Bool("shuffle", shuffle,
                  "Cut minibatches from the groups in random order. Otherwise the groups started "
                  "first are trained on first."),
  };
}

std::vector<Field> SupplyOptions::Fields() {
  return {
      Field::Enum("policy", policy, kSupplyNames,
                  "What bounds the groups that are begun (docs/policies.md)."),
      Field::Real("threshold", threshold,
                  "Batches of groups that may be outstanding beyond the one being trained; 0 = "
                  "strictly on-policy. Larger: fewer rollout stalls, older data. just_in_time "
                  "stays below it.")
          .AtLeast(0, "0 means on-policy")
          .AtMost(1e6),
      Field::Int("bound", bound, "quota, version_window, cancelling: steps data may be behind.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("over_sampling", over_sampling,
                  "over_sampling: batches of groups begun for one batch.")
          .AtLeast(1, "a batch has to fill")
          .AtMost(1e6),
      Field::Int("sync_interval", sync_interval,
                 "Steps between two weight syncs. Larger: cheaper syncs, older data.")
          .AtLeast(1)
          .AtMost(1e6),
      Field::Enum("requeue", requeue, kRequeueNames,
                  "Which prompts come back when their group did not train."),
      Field::Int("max_attempts", max_attempts, "A prompt is dispatched at most this often.")
          .AtLeast(1)
          .AtMost(1e6),
  };
}

int64_t SupplyOptions::MaxOutstanding(int64_t batch) const {
  // 1.13 * 100 is 113 less a rounding error; the error must not cost a credit.
  constexpr double kRoundingError = 1e-9;
  return static_cast<int64_t>(
      std::floor((1.0 + threshold) * static_cast<double>(batch * sync_interval) + kRoundingError));
}

int64_t SupplyOptions::MaxGroups(int64_t batch) const {
  switch (policy) {
    case SupplyKind::kThreshold:
    case SupplyKind::kCancelling:
    case SupplyKind::kJustInTime:
      return MaxOutstanding(batch);
    case SupplyKind::kQuota:
    case SupplyKind::kVersionWindow:
      return (bound + 1) * batch;
    case SupplyKind::kOverSampling:
      return static_cast<int64_t>(std::ceil(over_sampling * static_cast<double>(batch)));
  }
  PACE_CHECK(false, "unknown supply policy");
}

std::vector<Field> PoolOptions::Fields() {
  return {
      Field::Int("max_groups", max_groups,
                 "Most groups in the pool; 0 = no bound. A full pool evicts the group with the "
                 "highest score; it never blocks a finished group.")
          .AtLeast(0),
      Field::Int("max_bytes", max_bytes, "Most payload bytes in the pool; 0 = no bound.")
          .AtLeast(0),
      Field::Enum("draw_order", draw_order, kDrawOrderNames, "Which group a step draws next."),
  };
}

std::vector<Field> PrefixOptions::Fields() {
  return {
      Field::Int("min_tokens", min_tokens,
                 "An interrupted response with fewer policy tokens gets no prefix score.")
          .AtLeast(1),
      Field::Int("max_tokens", max_tokens, "Policy tokens that a prefix score looks at.")
          .AtLeast(1),
  };
}

std::vector<Field> RecordOptions::Fields() {
  return {
      Field::Enum("level", level, kRecordNames,
                  "Files a run writes: metrics; decisions too; full adds trace and events; auto "
                  "is full up to a million responses, then metrics."),
      Field::Enum("responses", responses, kResponseNames,
                  "Responses recorded as text: none; a sample of each step (best, worst, two at "
                  "random, one per verdict) and evaluation; all that were drawn or evaluated."),
  };
}

RecordLevel RecordOptions::Resolve(int64_t num_responses) const {
  if (level != RecordLevel::kAuto) return level;
  return num_responses <= kFullRecordResponses ? RecordLevel::kFull : RecordLevel::kMetrics;
}

}  // namespace pace
