#include "task/task.h"

#include <algorithm>
#include <utility>

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
  const std::vector<std::string> files =
      options.sources.empty() ? std::vector{options.file} : options.sources;
  const std::string key = options.sources.empty() ? "task.file" : "task.sources";
  PromptFit fit;
  std::vector<MixedSource::Part> parts;
  for (const std::string& file : files) {
    DataSource named{.file = file};
    if (!options.sources.empty()) {
      PACE_ASSIGN_OR_RETURN(named, DataSourceOf(file));
    }
    Result<Dataset> data = Dataset::Load(named.file, form);
    if (!data.ok()) return data.status().At(key);
    PACE_ASSIGN_OR_RETURN(const PromptFit own, FitPrompts(renderer, *data));
    fit.num_skipped += own.num_skipped;
    fit.longest = std::max(fit.longest, own.longest);
    parts.push_back({.source = std::make_shared<const DatasetSource>(std::move(*data), seed),
                     .weight = named.weight});
  }
  if (parts.size() == 1) return TrainingProblems{.source = parts.front().source, .fit = fit};
  PACE_ASSIGN_OR_RETURN(MixedSource mixed, MixedSource::Create(std::move(parts)));
  return TrainingProblems{.source = std::make_shared<const MixedSource>(std::move(mixed)),
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
