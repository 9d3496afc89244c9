#include "record/run_writer.h"

#include <array>
#include <utility>

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/utf8.h"
#include "record/build_info.h"
#include "record/line_file.h"
#include "record/run_files.h"
#include "record/run_reader.h"
#include "record/tensorboard_writer.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"auto", "metrics", "decisions", "full"};

constexpr size_t kMaxManifestBytes = size_t{1} << 20;

// Whole or not at all, unless the machine itself stops: without a flush to the disk, since a
// simulation writes many.
Status WriteUnflushed(const std::string& path, std::string_view text) {
  const std::string partial = path + ".partial";
  PACE_ASSIGN_OR_RETURN(const auto file,
                        Files::Default().OpenToWrite(partial, WriteMode::kReplace, path));
  Status status = file->Append(text);
  if (status.ok()) status = file->Close();
  if (status.ok()) status = Files::Default().Rename(partial, path);
  if (!status.ok()) (void)Files::Default().Remove(partial);
  return status;
}

Status PrepareDirectory(const std::string& directory) {
  PACE_RETURN_IF_ERROR(Files::Default().CreateFolder(directory));
  if (Files::Default().Exists(directory + "/manifest.json")) {
    return InvalidArgument(directory,
                           ": already holds a run (name another directory, or remove this one)");
  }
  return Status::Ok();
}

std::string ManifestText(const Settings& settings, const Manifest& manifest, RecordLevel level) {
  return ManifestToJson({.name = manifest.name,
                         .driver = manifest.driver,
                         .method = std::string(MethodName(settings.admission)),
                         .record = std::string(kLevelNames.at(static_cast<size_t>(level))),
                         .version = std::string(PaceVersion()),
                         .commit = std::string(PaceCommit()),
                         .seed = settings.run.seed,
                         .machine = manifest.machine,
                         .device = manifest.device,
                         .torch = manifest.torch,
                         .determinism = manifest.determinism,
                         .threads = manifest.threads,
                         .start = manifest.start});
}

// The manifest with another record level.
Status RestateLevel(const std::string& path, const std::string& before, const std::string& level) {
  PACE_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxManifestBytes));
  const std::string key = "\"record\":\"";
  const size_t at = text.rfind(key + before + '"');
  if (at == std::string::npos) return DataLoss(path, ": does not say its record level as written");
  text.replace(at + key.size(), before.size(), level);
  return WriteFileAtomically(path, text);
}

// Names come from settings as well (a benchmark's, say), so they may hold anything.
void PutRow(JsonWriter& out, const MetricsRow& row) {
  for (const auto& [name, value] : row) {
    out.TextKey(ReplaceIllFormed(name));
    out.Value(value);
  }
}

struct WriterOptions {
  RecordLevel level = RecordLevel::kMetrics;
  bool tensorboard = false;
  bool watchable = false;
  int64_t start = 0;
  int64_t max_file_bytes = kMaxRecordBytes;
};

class FileRunWriter final : public RunWriter {
 public:
  FileRunWriter(std::string directory, const WriterOptions& options)
      : directory_(std::move(directory)), options_(options), level_(options.level) {}

  // Opens the files of the level, each at its end if `sizes` knows it.
  Status Open(const FileSizes& sizes) {
    for (const Part& part : Parts()) {
      if (part.level > level_) continue;
      const bool goes_on = sizes.contains(part.name);
      if (part.opens_late && !goes_on) continue;
      const std::string path = Concat(directory_, "/", part.name);
      PACE_RETURN_IF_ERROR(goes_on ? GoOn(part, path, sizes) : part.file->Open(path, false));
    }
    for (const Part& part : Parts()) part.file->SetLimit(options_.max_file_bytes);
    for (const auto& [name, size] : sizes) sizes_before_[name] = size;
    if (options_.watchable) {
      metrics_.WriteOutEveryLine();
      evaluations_.WriteOutEveryLine();
      responses_.WriteOutEveryLine();
      warnings_.WriteOutEveryLine();
    }
    if (level_ >= RecordLevel::kFull && sizes.contains(kTraceFile)) {
      PACE_ASSIGN_OR_RETURN(const auto served, LastServed(Concat(directory_, "/", kTraceFile)));
      served_ = served;
    }
    if (!options_.tensorboard) return Status::Ok();
    const bool goes_on = sizes.contains(TensorBoardWriter::FileName(options_.start));
    PACE_ASSIGN_OR_RETURN(TensorBoardWriter board,
                          goes_on ? TensorBoardWriter::Append(directory_, options_.start)
                                  : TensorBoardWriter::Create(directory_, options_.start));
    board_.emplace(std::move(board));
    return Status::Ok();
  }

  Status WriteDecision(const StepPlan& plan, const GroupSummary& group, const Decision& decision,
                       const PayloadStats& payload) override {
    if (level_ < RecordLevel::kDecisions || !status_.ok()) return status_;
    JsonWriter out = decisions_.Begin();
    out.Put("step", plan.step.step());
    out.Put("group", group.id.value());
    out.Put("verdict", Name(decision.verdict));
    out.Put("reason", Name(decision.reason));
    out.Put("waiting", decision.waiting);
    out.Put("waiting_assembly", group.WaitingAssembly());
    out.Put("generation", decision.generation);
    out.Put("lag", group.LagAt(plan.step));
    out.Put("prefix_score", decision.prefix_score);
    out.Put("percentile", decision.percentile);
    out.Put("weight", decision.weight);
    out.Put("score", decision.score);
    out.Put("cutoff", plan.cutoff);
    out.Put("budget", plan.budget);
    out.Put("occupancy", plan.occupancy);
    out.Put("length", payload.length);
    out.Put("reward", payload.reward);
    out.Put("turns", payload.turns);
    return Keep(decisions_.End());
  }

  Status WriteTraceStep(const StepPlan& plan, int64_t batch,
                        std::optional<PolicyVersion> served) override {
    if (level_ < RecordLevel::kFull || !status_.ok()) return status_;
    JsonWriter out = trace_.Begin();
    out.Put("step", plan.step.step());
    out.Put("occupancy", plan.occupancy);
    out.Put("batch", batch);
    if (served.has_value()) out.Put("served", served->step());
    served_ = served;
    return Keep(trace_.End());
  }

  Status WriteTraceDraw(GroupId group, std::span<const TraceMember> members,
                        std::optional<PolicyVersion> served) override {
    if (level_ < RecordLevel::kFull || !status_.ok()) return status_;
    JsonWriter out = trace_.Begin();
    out.Put("group", group.value());
    out.Key("members");
    out.BeginArray();
    for (const TraceMember& member : members) PutMember(out, member);
    out.EndArray();
    if (served != served_) {
      out.Key("served");
      served.has_value() ? out.Value(served->step()) : out.Value(nullptr);
      served_ = served;
    }
    return Keep(trace_.End());
  }

  Status WriteEvent(std::string_view json) override {
    if (level_ < RecordLevel::kFull || !status_.ok()) return status_;
    return Keep(events_.Line(json));
  }

  Status WriteRollout(const RolloutLine& line) override {
    if (level_ < RecordLevel::kDecisions || !status_.ok()) return status_;
    PACE_RETURN_IF_ERROR(OpenLate(rollouts_, kRolloutsFile));
    JsonWriter out = rollouts_.Begin();
    out.Put("group", line.group.value());
    out.Put("member", line.member);
    out.Put("prompt", line.prompt.value());
    out.Put("completed", line.completed.step());
    out.Put("reason", line.reason);
    out.Put("correct", line.correct);
    out.Put("reward", line.reward);
    out.Put("length", line.length);
    out.Put("turns", line.turns);
    out.Put("tool_calls", line.tool_calls);
    out.Put("tool_failures", line.tool_failures);
    out.Put("tool_seconds", line.tool_time.count());
    if (!line.detail.empty()) {
      out.Key("detail");
      out.Raw(line.detail);
    }
    return Keep(rollouts_.End());
  }

  Status WriteResponse(const ResponseRecord& response) override {
    if (!status_.ok()) return status_;
    PACE_RETURN_IF_ERROR(OpenLate(responses_, kResponsesFile));
    return Keep(responses_.Line(ResponseLine(response)));
  }

  Status WriteWarning(const RunWarning& warning) override {
    if (!status_.ok()) return status_;
    PACE_RETURN_IF_ERROR(OpenLate(warnings_, kWarningsFile));
    return Keep(warnings_.Line(WarningLine(warning)));
  }

  Status WriteMetrics(const MetricsRow& row) override {
    if (!status_.ok()) return status_;
    // Whoever sees the step's line finds its verdicts and responses too.
    if (options_.watchable) {
      for (const Part& part : Parts()) PACE_RETURN_IF_ERROR(Keep(part.file->WriteOutAll()));
    }
    JsonWriter out = metrics_.Begin();
    PutRow(out, row);
    PACE_RETURN_IF_ERROR(Keep(metrics_.End()));
    const auto step = static_cast<int64_t>(Find(row, "step").value_or(0));
    return Keep(AddToBoard(step, Seconds(Find(row, "time").value_or(0)), row));
  }

  Status WriteEvaluation(PolicyVersion version, Seconds time, const MetricsRow& row) override {
    if (!status_.ok()) return status_;
    PACE_RETURN_IF_ERROR(OpenLate(evaluations_, kEvaluationsFile));
    JsonWriter out = evaluations_.Begin();
    out.Put("step", version.step());
    out.Put("time", time.count());
    PutRow(out, row);
    PACE_RETURN_IF_ERROR(Keep(evaluations_.End()));
    return Keep(AddToBoard(version.step(), time, row));
  }

  Status WriteSnapshot(PolicyVersion step, std::string_view json) override {
    if (level_ < RecordLevel::kFull || !status_.ok()) return status_;
    const std::string folder = directory_ + "/checkpoints";
    PACE_RETURN_IF_ERROR(Keep(Files::Default().CreateFolder(folder)));
    return Keep(WriteUnflushed(Concat(folder, "/", step, ".json"), json));
  }

  Result<FileSizes> Flush() override {
    if (!status_.ok()) return status_;
    FileSizes sizes = sizes_before_;  // a file that is not written any more stays as it is
    for (const Part& part : Parts()) {
      if (!part.file->is_open()) continue;
      const Result<std::vector<int64_t>> parts = part.file->FlushToDisk();
      if (!parts.ok()) return Keep(parts.status());
      for (size_t i = 0; i < parts->size(); ++i) sizes[PartName(part.name, i)] = (*parts)[i];
    }
    if (board_.has_value()) {
      const Result<int64_t> size = board_->FlushToDisk();
      if (!size.ok()) return Keep(size.status());
      sizes[TensorBoardWriter::FileName(options_.start)] = *size;
    }
    PACE_RETURN_IF_ERROR(Keep(Files::Default().FlushFolder(directory_)));
    return sizes;
  }

  Status Finish() override {
    for (const Part& part : Parts()) status_ = Keep(part.file->Close());
    if (board_.has_value()) status_ = Keep(board_->Close());
    return status_;
  }

  RecordLevel level() const override { return level_; }
  const std::string& directory() const override { return directory_; }

 private:
  struct Part {
    std::string name;
    LineFile* file;
    RecordLevel level;        // the lowest that writes it
    bool opens_late = false;  // with its first line
  };
  std::array<Part, 8> Parts() {
    return {{{kMetricsFile, &metrics_, RecordLevel::kMetrics},
             {kDecisionsFile, &decisions_, RecordLevel::kDecisions},
             {kTraceFile, &trace_, RecordLevel::kFull},
             {kEventsFile, &events_, RecordLevel::kFull},
             {kRolloutsFile, &rollouts_, RecordLevel::kDecisions, true},
             {kEvaluationsFile, &evaluations_, RecordLevel::kMetrics, true},
             {kResponsesFile, &responses_, RecordLevel::kMetrics, true},
             {kWarningsFile, &warnings_, RecordLevel::kMetrics, true}}};
  }

  static Status GoOn(const Part& part, const std::string& path, const FileSizes& sizes) {
    std::vector<int64_t> full = PartSizes(sizes, part.name);
    full.pop_back();
    return part.file->OpenToAppend(path, std::move(full));
  }

  Status OpenLate(LineFile& file, const char* name) {
    if (file.is_open()) return Status::Ok();
    return Keep(file.Open(Concat(directory_, "/", name), /*must_be_new=*/false));
  }

  Status AddToBoard(int64_t step, Seconds time, const MetricsRow& row) {
    if (!board_.has_value()) return Status::Ok();
    std::vector<Scalar> scalars;
    for (const auto& [name, value] : row) {
      if (name != "step" && name != "time") scalars.emplace_back(name, value);
    }
    return board_->Add(step, time, scalars);
  }

  static void PutMember(JsonWriter& out, const TraceMember& member) {
    out.BeginObject();
    out.Put("completed", member.completed.step());
    out.Key("segments");
    out.BeginArray();
    for (const Segment& segment : member.segments) {
      out.BeginArray();
      out.Value(segment.version.step());
      out.Value(segment.num_tokens);
      out.EndArray();
    }
    out.EndArray();
    out.Put("prefix_score", member.prefix_score);
    out.EndObject();
  }

  // Remembers the first error.
  Status Keep(const Status& status) {
    if (status_.ok()) status_ = status;
    return status_;
  }

  const std::string directory_;
  const WriterOptions options_;
  const RecordLevel level_;
  LineFile metrics_, decisions_, trace_, events_, rollouts_, evaluations_, responses_, warnings_;
  std::optional<TensorBoardWriter> board_;
  FileSizes sizes_before_;               // of a resumed run's files
  std::optional<PolicyVersion> served_;  // the one trace.jsonl stated last
  Status status_;
};

}  // namespace

Status RewriteConfig(const std::string& directory, const Settings& settings) {
  return WriteFileAtomically(directory + "/config.yaml", ToYaml(settings));
}

Result<std::unique_ptr<RunWriter>> RunWriter::Create(const std::string& directory,
                                                     const Settings& settings,
                                                     const Manifest& manifest, RecordLevel level) {
  PACE_CHECK(level != RecordLevel::kAuto, "RecordOptions::Resolve says what auto means");
  PACE_RETURN_IF_ERROR(PrepareDirectory(directory));
  // The manifest last: a directory that has one can be resumed.
  PACE_RETURN_IF_ERROR(WriteUnflushed(directory + "/config.yaml", ToYaml(settings)));
  PACE_RETURN_IF_ERROR(
      WriteUnflushed(directory + "/manifest.json", ManifestText(settings, manifest, level)));
  auto writer = std::make_unique<FileRunWriter>(
      directory, WriterOptions{level, manifest.tensorboard, manifest.watchable, manifest.start,
                               manifest.max_file_bytes});
  PACE_RETURN_IF_ERROR(writer->Open({}));
  return std::unique_ptr<RunWriter>(std::move(writer));
}

Result<std::unique_ptr<RunWriter>> RunWriter::Resume(const std::string& directory,
                                                     RecordLevel level, bool tensorboard,
                                                     const std::map<std::string, int64_t>& sizes,
                                                     int64_t max_file_bytes) {
  PACE_CHECK(level != RecordLevel::kAuto, "RecordOptions::Resolve says what auto means");
  PACE_ASSIGN_OR_RETURN(const RunManifest manifest, ReadManifest(directory));
  const std::string wanted(kLevelNames.at(static_cast<size_t>(level)));
  const bool starts_full = level == RecordLevel::kFull && manifest.record != wanted;
  if (starts_full && !sizes.empty()) {
    return InvalidArgument("record.level = full: the run in ", directory, " was begun with ",
                           manifest.record, ", and a trace must begin with its run");
  }
  PACE_RETURN_IF_ERROR(CutBack(directory, TensorBoardWriter::FileName(manifest.start), sizes));
  if (manifest.record != wanted) {
    PACE_RETURN_IF_ERROR(RestateLevel(directory + "/manifest.json", manifest.record, wanted));
  }
  auto writer = std::make_unique<FileRunWriter>(
      directory,
      WriterOptions{level, tensorboard, /*watchable=*/true, manifest.start, max_file_bytes});
  PACE_RETURN_IF_ERROR(writer->Open(sizes));
  return std::unique_ptr<RunWriter>(std::move(writer));
}

}  // namespace pace
