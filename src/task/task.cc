#include "task/task.h"

#include "task/dataset.h"

namespace pace {

Result<TrainingProblems> MakeTrainingProblems(const TaskOptions& options,
                                              const PromptRenderer& renderer, uint64_t seed) {
  if (options.kind != TaskKind::kDataset) {
    TaskOptions trained = options;
    trained.length_scale = options.train_length_scale.value_or(options.length_scale);
    PACE_ASSIGN_OR_RETURN(const auto task, MakeSyntheticTask(trained));
    return TrainingProblems{
        .source = std::make_shared<const SyntheticSource>(task, seed, options.prompt_template)};
  }
  PACE_ASSIGN_OR_RETURN(const DatasetForm form, DatasetFormOf(options));
  Result<Dataset> data = Dataset::Load(options.file, form);
  if (!data.ok()) return data.status().At("task.file");
  PACE_ASSIGN_OR_RETURN(const PromptFit fit, FitPrompts(renderer, *data));
  return TrainingProblems{.source = std::make_shared<const DatasetSource>(std::move(*data), seed),
                          .fit = fit};
}

Result<SftSource> MakeSftSource(const TaskOptions& options, uint64_t seed) {
  if (options.kind == TaskKind::kDataset) {
    return InvalidArgument(
        "task.kind = dataset: supervised examples come from generated tasks (list_sum, "
        "arithmetic, product, word_problems)");
  }
  PACE_ASSIGN_OR_RETURN(const auto task, MakeSyntheticTask(options));
  return SftSource(task, seed, options.worked_share, options.prompt_template);
}

}  // namespace pace
