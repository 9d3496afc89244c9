// Dataset: the problems of a JSON Lines or Parquet file, and the endless stream over them.
//
// Lines are checked when they are read and kept as they are written, sixteen
// bytes more each; a problem is put together when it is asked for.
//
//   Result<Dataset> data = Dataset::Load("train.jsonl", {.verifier = mode});
//   DatasetSource problems(std::move(*data), seed);
//
// Thread-safety: immutable but for Keep.
#ifndef PACE_TASK_DATASET_H_
#define PACE_TASK_DATASET_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/task_options.h"
#include "core/status.h"
#include "task/dataset_line.h"
#include "task/problem.h"
#include "task/problem_source.h"

namespace pace {

// How the rows of a file become problems.
struct DatasetForm {
  // The prompt of a row that holds a problem; every "{problem}" in it stands for
  // the problem's text, other braces for themselves.
  std::string prompt_template = "{problem}";
  // None: by the row's data_source (reward/data_source.h), else dapo-int.
  std::optional<VerifierMode> verifier = {};
  DatasetKeys keys = {};
  std::string python = "python3";  // reads Parquet files
};

// What the options say of files.
Result<DatasetForm> DatasetFormOf(const TaskOptions& options);

class Dataset {
 public:
  // A bad line is an error "FILE:LINE: what", and so is a data_source without a
  // verifier where the form names none; blank lines are passed over, but a file
  // without any problem is an error. For lines, see dataset_line.h.
  static Result<Dataset> Load(const std::string& path, DatasetForm form = {});
  // The same from the file's content.
  static Result<Dataset> Parse(std::string_view text, const std::string& name,
                               DatasetForm form = {});

  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  // The file's name without folder and ending: "aime2024".
  const std::string& name() const { return name_; }

  // Row number `row` in the order of the file. A row without an id is called
  // NAME/NUMBER, counted from 0 as the file was read.
  // REQUIRES: 0 <= row < size()
  Problem Row(int64_t row) const;

  // Leaves out the rows that `keep` refuses; the others keep order and id.
  // Stops at the first error and is then unchanged.
  Status Keep(const std::function<Result<bool>(const Problem&)>& keep);

 private:
  struct Span {
    uint64_t begin;
    uint32_t num_bytes;
    uint32_t number;
  };

  Dataset(std::string path, DatasetForm form);
  // Takes in line number `line_number` of the file.
  Status Add(std::string_view line, int64_t line_number);
  Status CheckNotEmpty() const;

  std::string path_;
  std::string name_;
  DatasetForm form_;
  std::string text_;  // all lines
  std::vector<Span> rows_;
};

// Epoch after epoch over a dataset, each in an order of its own that depends on
// (seed, epoch) alone; every problem comes once in each.
class DatasetSource final : public ProblemSource {
 public:
  // REQUIRES: data.size() >= 1
  DatasetSource(Dataset data, uint64_t seed);

  Problem At(PromptIndex index) const override;
  std::optional<int64_t> epoch_size() const override { return data_.size(); }

 private:
  Dataset data_;
  uint64_t seed_;
};

// Several datasets mixed by weight: of kMixCycle problems in a row each gives its share, evenly
// spread. Each is gone through epoch by epoch, as alone.
class MixedSource final : public ProblemSource {
 public:
  static constexpr int64_t kMixCycle = 1000;
  struct Part {
    std::shared_ptr<const ProblemSource> source;  // of a dataset
    double weight = 1;
  };
  // An error where a weight is too small to give one problem of a cycle.
  static Result<MixedSource> Create(std::vector<Part> parts);

  Problem At(PromptIndex index) const override;
  // After this many problems each of every dataset has come at least once.
  std::optional<int64_t> epoch_size() const override { return epoch_size_; }

 private:
  struct Slot {
    size_t part = 0;
    int64_t rank = 0;  // among the slots of its part
  };

  std::vector<Part> parts_;
  std::vector<Slot> cycle_;
  std::vector<int64_t> shares_;  // of a cycle, by part
  int64_t epoch_size_ = 0;
};

}  // namespace pace

#endif  // PACE_TASK_DATASET_H_
