#include "task/dataset.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "config/reward_options.h"
#include "core/check.h"
#include "core/printable.h"
#include "reward/verifier.h"
#include "task/line_file.h"
#include "task/problem.h"
#include "task/splits.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

// The verifier of a row, or an error that says how to choose one.
Result<VerifierMode> VerifierOf(const DatasetForm& form, const DatasetLine& line) {
  if (form.verifier.has_value()) return *form.verifier;
  if (line.data_source.empty()) return VerifierMode::kDapoInteger;
  const std::optional<VerifierMode> mode = VerifierOfDataSource(line.data_source);
  if (mode.has_value()) return *mode;
  return InvalidArgument("data_source = ", Printable(line.data_source),
                         ": no verifier is known for it (set task.verifier, or write FILE@MODE "
                         "for a benchmark)");
}

}  // namespace

Result<DatasetForm> DatasetFormOf(const TaskOptions& options) {
  DatasetForm form{.prompt_template = options.prompt_template,
                   .keys = {.prompt = options.prompt_key, .answer = options.answer_key},
                   .python = options.python};
  if (options.verifier == "auto") return form;
  PACE_ASSIGN_OR_RETURN(const auto own, OwnRewardOf(options.verifier));
  if (own.has_value()) {
    form.verifier = VerifierMode::kOwn;
    return form;
  }
  const Result<VerifierMode> mode = VerifierModeFromName(options.verifier);
  if (!mode.ok()) return mode.status().At("task.verifier");
  form.verifier = *mode;
  return form;
}

Dataset::Dataset(std::string path, DatasetForm form)
    : path_(std::move(path)), name_(fs::path(path_).stem().string()), form_(std::move(form)) {}

Result<Dataset> Dataset::Load(const std::string& path, DatasetForm form) {
  Dataset data(path, std::move(form));
  const auto add = [&](std::string_view line, int64_t number) { return data.Add(line, number); };
  PACE_RETURN_IF_ERROR(ReadLines(path, data.form_.python, add));
  PACE_RETURN_IF_ERROR(data.CheckNotEmpty());
  return data;
}

Result<Dataset> Dataset::Parse(std::string_view text, const std::string& name, DatasetForm form) {
  Dataset data(name, std::move(form));
  PACE_RETURN_IF_ERROR(CutLines(
      text, name, [&](std::string_view line, int64_t number) { return data.Add(line, number); }));
  PACE_RETURN_IF_ERROR(data.CheckNotEmpty());
  return data;
}

Status Dataset::Add(std::string_view line, int64_t line_number) {
  const auto place = [&] { return Concat(path_, ":", line_number); };
  if (rows_.size() == std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument(place(), ": more than 2^32 - 1 problems");
  }
  const Result<DatasetLine> parsed = ParseDatasetLine(line, form_.keys);
  if (!parsed.ok()) return parsed.status().At(place());
  PACE_RETURN_IF_ERROR(VerifierOf(form_, *parsed).status().At(place()));
  rows_.push_back({.begin = text_.size(),
                   .num_bytes = static_cast<uint32_t>(line.size()),
                   .number = static_cast<uint32_t>(rows_.size())});
  text_ += line;
  return Status::Ok();
}

Status Dataset::CheckNotEmpty() const {
  return rows_.empty() ? InvalidArgument(path_, ": must hold at least one problem") : Status::Ok();
}

Problem Dataset::Row(int64_t row) const {
  PACE_CHECK(0 <= row && row < size(), "row ", row, " of ", size());
  const Span& span = rows_[static_cast<size_t>(row)];
  Result<DatasetLine> line =
      ParseDatasetLine(std::string_view(text_).substr(span.begin, span.num_bytes), form_.keys);
  PACE_CHECK(line.ok(), "a line that was read before: ", line.status().message());
  if (const auto* problem = std::get_if<std::string>(&line->prompt)) {
    line->prompt = FillPromptTemplate(form_.prompt_template, *problem);
  }
  return {.id = line->id.has_value() ? *line->id : Concat(name_, "/", span.number),
          .prompt = std::move(line->prompt),
          .answer = std::move(line->answer),
          .verifier = *VerifierOf(form_, *line),
          .data_source = std::move(line->data_source),
          .ability = std::move(line->ability),
          .extra_info = std::move(line->extra_info)};
}

Status Dataset::Keep(const std::function<Result<bool>(const Problem&)>& keep) {
  std::vector<Span> kept;
  for (int64_t row = 0; row < size(); ++row) {
    const Result<bool> verdict = keep(Row(row));
    if (!verdict.ok()) return verdict.status().At(path_);
    if (*verdict) kept.push_back(rows_[static_cast<size_t>(row)]);
  }
  rows_ = std::move(kept);
  return Status::Ok();
}

DatasetSource::DatasetSource(Dataset data, uint64_t seed) : data_(std::move(data)), seed_(seed) {
  PACE_CHECK(data_.size() >= 1, "a dataset without problems");
}

Problem DatasetSource::At(PromptIndex index) const {
  PACE_CHECK(index.value() >= 0, "index ", index);
  const int64_t epoch = index.value() / data_.size();
  const int64_t position = index.value() % data_.size();
  return data_.Row(ShuffledPosition(seed_, epoch, position, data_.size()));
}

Result<MixedSource> MixedSource::Create(std::vector<Part> parts) {
  MixedSource mixed;
  double total = 0;
  for (const Part& part : parts) total += part.weight;
  mixed.shares_.assign(parts.size(), 0);
  for (int64_t slot = 0; slot < kMixCycle; ++slot) {
    // The part that is furthest behind its share.
    size_t next = 0;
    double furthest = -1;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double due = parts[i].weight / total * static_cast<double>(slot + 1);
      const double behind = due - static_cast<double>(mixed.shares_[i]);
      if (behind > furthest) {
        furthest = behind;
        next = i;
      }
    }
    mixed.cycle_.push_back({.part = next, .rank = mixed.shares_[next]++});
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t share = mixed.shares_[i];
    if (share == 0) {
      return InvalidArgument("task.sources: weight ", parts[i].weight, " of ", total,
                             " gives no problem in ", kMixCycle, " (leave the file out)");
    }
    const int64_t cycles = (*parts[i].source->epoch_size() + share - 1) / share;
    mixed.epoch_size_ = std::max(mixed.epoch_size_, cycles * kMixCycle);
  }
  mixed.parts_ = std::move(parts);
  return mixed;
}

Problem MixedSource::At(PromptIndex index) const {
  PACE_CHECK(index.value() >= 0, "index ", index);
  const Slot& slot = cycle_[static_cast<size_t>(index.value() % kMixCycle)];
  const int64_t own = index.value() / kMixCycle * shares_[slot.part] + slot.rank;
  return parts_[slot.part].source->At(PromptIndex(own));
}

}  // namespace pace
