#include "record/session_record.h"

#include <filesystem>
#include <utility>

namespace pace {

SessionRecord::SessionRecord(std::unique_ptr<RunWriter> writer, int64_t batch)
    : writer_(std::move(writer)), batch_(batch) {}

Result<SessionRecord> SessionRecord::Create(const std::string& directory, const Settings& settings,
                                            int64_t start) {
  const std::filesystem::path path(directory);
  Manifest manifest{.name = path.has_filename() ? path.filename().string()
                                                : path.parent_path().filename().string(),
                    .driver = "session",
                    .start = start,
                    .watchable = true};
  PACE_ASSIGN_OR_RETURN(auto writer,
                        RunWriter::Create(directory, settings, manifest, RecordLevel::kFull));
  return SessionRecord(std::move(writer), settings.batch.num_groups);
}

Result<SessionRecord> SessionRecord::Resume(const std::string& directory, const Settings& settings,
                                            const State& state) {
  PACE_ASSIGN_OR_RETURN(auto writer, RunWriter::Resume(directory, RecordLevel::kFull,
                                                       /*tensorboard=*/false, state.sizes));
  SessionRecord record(std::move(writer), settings.batch.num_groups);
  record.num_admitted_ = state.num_admitted;
  record.num_tokens_ = state.num_tokens;
  record.num_tokens_rejected_ = state.num_tokens_rejected;
  return record;
}

Status SessionRecord::BeginStep(const StepPlan& plan, std::optional<PolicyVersion> served,
                                Seconds now) {
  PACE_RETURN_IF_ERROR(EndStep(now));
  plan_ = plan;
  step_begin_ = now;
  metrics_.BeginStep(plan);
  return writer_->WriteTraceStep(plan, batch_, served);
}

Status SessionRecord::Draw(const GroupSummary& group, std::span<const TraceMember> members,
                           const Decision& decision, const PayloadStats& payload,
                           std::optional<PolicyVersion> served) {
  if (!plan_.has_value()) return InvalidArgument("group ", group.id, ": no step has begun");
  metrics_.AddDraw(group, decision, payload);
  num_tokens_ += group.num_tokens;
  num_step_tokens_ += group.num_tokens;
  if (decision.verdict == Verdict::kAdmit) {
    ++num_admitted_;
  } else {
    num_tokens_rejected_ += group.num_tokens;
  }
  PACE_RETURN_IF_ERROR(writer_->WriteDecision(*plan_, group, decision, payload));
  return writer_->WriteTraceDraw(group.id, members, served);
}

Status SessionRecord::EndStep(Seconds now) {
  if (!plan_.has_value()) return Status::Ok();
  plan_.reset();
  // Where the time of a step went is the trainer's knowledge.
  const Seconds step = now - step_begin_;
  const MetricsRow row = metrics_.EndStep({.step = step, .other = step},
                                          {.time = now,
                                           .num_trained_groups = num_admitted_,
                                           .num_tokens_generated = num_tokens_,
                                           .num_tokens_never_trained = num_tokens_rejected_,
                                           .num_step_tokens = std::exchange(num_step_tokens_, 0)});
  return writer_->WriteMetrics(row);
}

Result<SessionRecord::State> SessionRecord::Flush(Seconds now) {
  PACE_RETURN_IF_ERROR(EndStep(now));
  PACE_ASSIGN_OR_RETURN(auto sizes, writer_->Flush());
  return State{std::move(sizes), now, num_admitted_, num_tokens_, num_tokens_rejected_};
}

Status SessionRecord::Finish(Seconds now) {
  PACE_RETURN_IF_ERROR(EndStep(now));
  return writer_->Finish();
}

}  // namespace pace
