#include "record/run_writer.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "core/check.h"
#include "record/build_info.h"
#include "record/line_file.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"auto", "metrics", "decisions", "full"};

Status PrepareDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error) return Unavailable(directory, ": cannot be created: ", error.message());
  if (!std::filesystem::is_directory(directory, error)) {
    return InvalidArgument(directory, ": is not a directory");
  }
  if (std::filesystem::exists(directory + "/manifest.json", error)) {
    return InvalidArgument(directory,
                           ": already holds a run (name another directory, or remove this one)");
  }
  return Status::Ok();
}

Status WriteManifest(const std::string& path, const Settings& settings, const Manifest& manifest,
                     RecordLevel level) {
  LineFile file;
  PACE_RETURN_IF_ERROR(file.Open(path, /*must_be_new=*/true));
  JsonWriter json = file.Begin();
  json.Put("format", 1);
  json.Put("name", manifest.name);
  json.Put("driver", manifest.driver);
  json.Put("method", MethodName(settings.admission));
  json.Put("seed", settings.run.seed);
  json.Key("pace");
  json.BeginObject();
  json.Put("version", PaceVersion());
  json.Put("commit", PaceCommit());
  json.EndObject();
  json.Put("record", kLevelNames.at(static_cast<size_t>(level)));
  PACE_RETURN_IF_ERROR(file.End());
  return file.Close();
}

Status WriteConfig(const std::string& path, const Settings& settings) {
  LineFile file;
  PACE_RETURN_IF_ERROR(file.Open(path, /*must_be_new=*/false));
  PACE_RETURN_IF_ERROR(file.Text(ToYaml(settings)));
  return file.Close();
}

class FileRunWriter final : public RunWriter {
 public:
  FileRunWriter(std::string directory, RecordLevel level)
      : directory_(std::move(directory)), level_(level) {}

  Status Open() {
    PACE_RETURN_IF_ERROR(metrics_.Open(directory_ + "/metrics.jsonl", false));
    if (level_ >= RecordLevel::kDecisions) {
      PACE_RETURN_IF_ERROR(decisions_.Open(directory_ + "/decisions.jsonl", false));
    }
    if (level_ >= RecordLevel::kFull) {
      PACE_RETURN_IF_ERROR(trace_.Open(directory_ + "/trace.jsonl", false));
      PACE_RETURN_IF_ERROR(events_.Open(directory_ + "/events.jsonl", false));
    }
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

  Status WriteMetrics(const MetricsRow& row) override {
    if (!status_.ok()) return status_;
    JsonWriter out = metrics_.Begin();
    for (const auto& [name, value] : row) out.Put(name, value);
    return Keep(metrics_.End());
  }

  Status WriteSnapshot(PolicyVersion step, std::string_view json) override {
    if (level_ < RecordLevel::kFull || !status_.ok()) return status_;
    const std::string folder = directory_ + "/checkpoints";
    std::error_code ignored;  // Open says what is wrong
    std::filesystem::create_directory(folder, ignored);
    LineFile file;
    const Status opened = file.Open(Concat(folder, "/", step, ".json"), /*must_be_new=*/false);
    if (!opened.ok()) return Keep(opened);
    const Status written = file.Text(json);
    return Keep(written.ok() ? file.Close() : written);
  }

  Status Finish() override {
    for (LineFile* file : {&metrics_, &decisions_, &trace_, &events_}) {
      const Status closed = file->Close();
      if (status_.ok()) status_ = closed;
    }
    return status_;
  }

  RecordLevel level() const override { return level_; }
  const std::string& directory() const override { return directory_; }

 private:
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
  const RecordLevel level_;
  LineFile metrics_, decisions_, trace_, events_;
  std::optional<PolicyVersion> served_;  // the one trace.jsonl stated last
  Status status_;
};

}  // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::Create(const std::string& directory,
                                                     const Settings& settings,
                                                     const Manifest& manifest, RecordLevel level) {
  PACE_CHECK(level != RecordLevel::kAuto, "RecordOptions::Resolve says what auto means");
  PACE_RETURN_IF_ERROR(PrepareDirectory(directory));
  // The manifest first: from here on the directory is taken.
  PACE_RETURN_IF_ERROR(WriteManifest(directory + "/manifest.json", settings, manifest, level));
  PACE_RETURN_IF_ERROR(WriteConfig(directory + "/config.yaml", settings));
  auto writer = std::make_unique<FileRunWriter>(directory, level);
  PACE_RETURN_IF_ERROR(writer->Open());
  return std::unique_ptr<RunWriter>(std::move(writer));
}

}  // namespace pace
