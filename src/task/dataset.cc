#include "task/dataset.h"

#include <filesystem>
#include <fstream>
#include <limits>

#include "core/check.h"
#include "task/dataset_line.h"
#include "task/prompt_template.h"
#include "task/shuffle.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = size_t{1} << 20;

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Cuts blocks of a text into its lines.
class LineCutter {
 public:
  // Hands every line that ends in `block` to `take`; keeps the rest.
  template <typename Take>
  Status Feed(std::string_view block, const Take& take) {
    size_t newline = 0;
    while ((newline = block.find('\n')) != std::string_view::npos) {
      const std::string_view head = block.substr(0, newline);
      block.remove_prefix(newline + 1);
      if (rest_.empty()) {
        PACE_RETURN_IF_ERROR(take(head));
      } else {
        rest_ += head;
        PACE_RETURN_IF_ERROR(take(rest_));
        rest_.clear();
      }
    }
    rest_ += block;
    // An endless line must not fill the memory; `take` says what is wrong.
    return rest_.size() > Dataset::kMaxLineBytes ? take(rest_) : Status::Ok();
  }

  template <typename Take>
  Status Finish(const Take& take) const {
    return rest_.empty() ? Status::Ok() : take(rest_);
  }

 private:
  std::string rest_;
};

}  // namespace

Result<DatasetForm> DatasetFormOf(const TaskOptions& options) {
  DatasetForm form{.prompt_template = options.prompt_template};
  if (options.verifier == "auto") return form;
  const Result<VerifierMode> mode = VerifierModeFromName(options.verifier);
  if (!mode.ok()) return mode.status().At("task.verifier");
  form.verifier = *mode;
  return form;
}

Dataset::Dataset(std::string path, DatasetForm form)
    : path_(std::move(path)), name_(fs::path(path_).stem().string()), form_(std::move(form)) {}

Result<Dataset> Dataset::Load(const std::string& path, DatasetForm form) {
  if (path.ends_with(".parquet")) {
    return InvalidArgument(
        path,
        ": is parquet: convert it first (scripts/parquet_to_jsonl.py FILE.parquet "
        "> FILE.jsonl)");
  }
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  std::ifstream file(path, std::ios::binary);
  if (is_folder || !file) return NotFound(path, ": cannot be read");

  Dataset data(path, std::move(form));
  LineCutter lines;
  int64_t line_number = 0;
  const auto take = [&](std::string_view line) { return data.Add(line, ++line_number); };
  std::string block(kBlockBytes, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    const auto num_bytes = static_cast<size_t>(file.gcount());
    PACE_RETURN_IF_ERROR(lines.Feed(std::string_view(block).substr(0, num_bytes), take));
  }
  if (file.bad()) return Unavailable(path, ": reading failed");
  PACE_RETURN_IF_ERROR(lines.Finish(take));
  PACE_RETURN_IF_ERROR(data.CheckNotEmpty());
  return data;
}

Result<Dataset> Dataset::Parse(std::string_view text, const std::string& name, DatasetForm form) {
  Dataset data(name, std::move(form));
  LineCutter lines;
  int64_t line_number = 0;
  const auto take = [&](std::string_view line) { return data.Add(line, ++line_number); };
  PACE_RETURN_IF_ERROR(lines.Feed(text, take));
  PACE_RETURN_IF_ERROR(lines.Finish(take));
  PACE_RETURN_IF_ERROR(data.CheckNotEmpty());
  return data;
}

Status Dataset::Add(std::string_view line, int64_t line_number) {
  if (IsBlank(line)) return Status::Ok();
  const auto place = [&] { return Concat(path_, ":", line_number); };
  if (line.size() > kMaxLineBytes) {
    return InvalidArgument(place(), ": a line of more than ", kMaxLineBytes, " bytes");
  }
  if (rows_.size() == std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument(place(), ": more than 2^32 - 1 problems");
  }
  const Result<DatasetLine> parsed = ParseDatasetLine(line);
  if (!parsed.ok()) return parsed.status().At(place());
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
      ParseDatasetLine(std::string_view(text_).substr(span.begin, span.num_bytes));
  PACE_CHECK(line.ok(), "a line that was read before: ", line.status().message());
  if (const auto* problem = std::get_if<std::string>(&line->prompt)) {
    line->prompt = FillPromptTemplate(form_.prompt_template, *problem);
  }
  return {.id = line->id.has_value() ? *line->id : Concat(name_, "/", span.number),
          .prompt = std::move(line->prompt),
          .answer = std::move(line->answer),
          .verifier = form_.verifier,
          .data_source = std::move(line->data_source),
          .ability = std::move(line->ability)};
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

}  // namespace pace
