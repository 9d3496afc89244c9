#include "task/synthetic_source.h"

#include "core/check.h"
#include "task/splits.h"

namespace pace {

Problem ToProblem(const SyntheticTask& task, const Exercise& exercise, std::string id,
                  std::string_view prompt_template) {
  return {.id = std::move(id),
          .prompt = FillPromptTemplate(prompt_template, exercise.prompt),
          .answer = exercise.answer,
          .verifier = task.verifier()};
}

Problem SyntheticSource::At(PromptIndex index) const {
  PACE_CHECK(index.value() >= 0, "index ", index);
  return ToProblem(*task_,
                   task_->At(Purpose::kTraining, seed_, static_cast<uint64_t>(index.value())),
                   Concat(task_->name(), "/", index), prompt_template_);
}

SftExample SftSource::At(int64_t index) const {
  PACE_CHECK(index >= 0, "index ", index);
  const auto at = static_cast<uint64_t>(index);
  const Exercise exercise = task_->At(Purpose::kSupervised, seed_, at);
  const CounterRandom style(seed_, static_cast<uint32_t>(TaskStream::kSupervisedStyle));
  return {.prompt = FillPromptTemplate(prompt_template_, exercise.prompt),
          .turns = task_->Demonstration(exercise, worked_share_, style.Uniform(at))};
}

}  // namespace pace
