#include "task/task.h"

#include "task/dataset.h"

namespace pace {

Result<TrainingProblems> MakeTrainingProblems(const TaskOptions& options,
                                              const PromptRenderer& renderer, uint64_t seed) {
  if (options.kind != TaskKind::kDataset) {
    TaskOptions trained = options;
    trained.length_scale = options.train_length_scale.value_or(options.length_scale);
    const auto task = MakeSyntheticTask(trained);
    if (!task.ok()) return task.status();
    return TrainingProblems{
        .source = std::make_shared<const SyntheticSource>(*task, seed, options.prompt_template)};
  }
  const Result<DatasetForm> form = DatasetFormOf(options);
  if (!form.ok()) return form.status();
  Result<Dataset> data = Dataset::Load(options.file, *form);
  if (!data.ok()) return data.status().At("task.file");
  const Result<PromptFit> fit = FitPrompts(renderer, *data);
  if (!fit.ok()) return fit.status();
  return TrainingProblems{.source = std::make_shared<const DatasetSource>(std::move(*data), seed),
                          .fit = *fit};
}

Result<SftSource> MakeSftSource(const TaskOptions& options, uint64_t seed) {
  if (options.kind == TaskKind::kDataset) {
    return InvalidArgument(
        "task.kind = dataset: supervised examples come from generated tasks (list_sum, "
        "arithmetic, product, word_problems)");
  }
  const auto task = MakeSyntheticTask(options);
  if (!task.ok()) return task.status();
  return SftSource(*task, seed, options.worked_share, options.prompt_template);
}

}  // namespace pace
