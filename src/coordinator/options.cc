#include "coordinator/options.h"

namespace pace {

CoordinatorOptions CoordinatorOptions::Of(const Settings& settings) {
  return {.batch = settings.batch.num_groups,
          .group_size = settings.NumMembers(),
          .num_steps = settings.run.num_steps,
          .sync_interval = settings.supply.sync_interval,
          .checkpoint_every = settings.run.checkpoint_every,
          .evaluate_every = settings.run.evaluate_every,
          .evaluate_at_start = settings.run.evaluate_at_start,
          .requeue = settings.supply.requeue,
          .max_attempts = settings.supply.max_attempts,
          .greedy_last = settings.train.WantsGreedyResponse(),
          .pool = settings.pool};
}

bool CoordinatorOptions::EvaluatesAt(PolicyVersion version) const {
  const bool is_recorded = version.step() <= evaluated.last;
  if (version.step() == 0 && !evaluate_at_start && !is_recorded) return false;
  return Due(version, evaluate_every, evaluated);
}

bool CoordinatorOptions::Due(PolicyVersion version, int64_t every,
                             const RecordedVersions& recorded) {
  if (version.step() <= recorded.last) return recorded.versions.contains(version.step());
  return every > 0 && version.step() % every == 0;
}

}  // namespace pace
