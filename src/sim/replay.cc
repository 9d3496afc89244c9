#include "sim/replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "control/admission_policy.h"
#include "control/progress_guard.h"
#include "coordinator/coordinator.h"
#include "coordinator/event_json.h"
#include "core/json_writer.h"
#include "record/run_files.h"
#include "record/trace_reader.h"

namespace pace {
namespace {

// Writes plans and decisions as lines.
class LinePrinter final : public CoordinatorObserver {
 public:
  explicit LinePrinter(const LineSink& sink) : sink_(sink) {}

  void PutStep(const StepPlan& plan) {
    has_budget_ = plan.budget.has_value();
    Line([&](JsonWriter& json) {
      json.Put("step", plan.step.step());
      if (!has_budget_) return;
      json.Put("target_rate", plan.target_rate);
      json.Put("smoothed_rate", plan.smoothed_rate);
      json.Put("budget", plan.budget);
      json.Put("cutoff", plan.cutoff);
    });
  }

  // Continues in the step of the plan.
  void Resume(const StepPlan& plan) { has_budget_ = plan.budget.has_value(); }

  void PutDraw(const GroupSummary& group, const Decision& decision) {
    Line([&](JsonWriter& json) {
      json.Put("group", group.id.value());
      json.Put("waiting", decision.waiting);
      json.Put("generation", decision.generation);
      if (has_budget_) {
        json.Put("prefix_score", decision.prefix_score);
        json.Put("percentile", decision.percentile);
        json.Put("weight", decision.weight);
      }
      json.Put("score", decision.score);
      json.Put("verdict", Name(decision.verdict));
      json.Put("reason", Name(decision.reason));
    });
  }

  void OnStepBegan(const StepPlan& plan, std::optional<PolicyVersion>, const PoolState&) override {
    PutStep(plan);
  }
  void OnGroupDrawn(const GroupSummary& group, const Decision& decision,
                    std::optional<PolicyVersion>) override {
    PutDraw(group, decision);
  }

 private:
  template <typename Fields>
  void Line(Fields fields) {
    line_.clear();
    JsonWriter json(line_);
    json.BeginObject();
    fields(json);
    json.EndObject();
    line_ += '\n';
    sink_(line_);
  }

  const LineSink& sink_;
  std::string line_;
  bool has_budget_ = false;
};

constexpr size_t kMaxSnapshotBytes = size_t{1} << 40;

Status RestoreFrom(const std::string& path, Coordinator& coordinator, LinePrinter& printer) {
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxSnapshotBytes));
  PACE_ASSIGN_OR_RETURN(const auto snapshot, SnapshotFromJson(text, path));
  PACE_RETURN_IF_ERROR(coordinator.Restore(snapshot).At(path));
  printer.Resume(snapshot.admission.plan);
  return Status::Ok();
}

Result<std::unique_ptr<AdmissionPolicy>> MakePolicy(const PolicyMaker& maker,
                                                    const AdmissionOptions& options, int64_t batch,
                                                    uint64_t seed) {
  if (maker) return maker();
  PACE_RETURN_IF_ERROR(CheckBuiltIn(options));
  return MakeAdmissionPolicy(options, batch, seed);
}

// Judges the draws of one trace.
class TracePlayer {
 public:
  TracePlayer(const AdmissionOptions& options, uint64_t seed, const LineSink& sink,
              const PolicyMaker& maker)
      : options_(options), seed_(seed), printer_(sink), maker_(maker) {}

  Status Play(const TraceStep& step) {
    if (policy_ == nullptr) PACE_RETURN_IF_ERROR(Begin(step));
    const StepPlan plan = policy_->BeginStep(
        step.step, {.occupancy = step.occupancy, .batch = step.batch.value_or(1)});
    PACE_RETURN_IF_ERROR(Failure());
    printer_.PutStep(plan);
    if (guard_.has_value()) guard_->BeginStep(step.step);
    return Status::Ok();
  }

  Status Play(const TraceGroup& trace) {
    std::vector<MemberSummary> members;
    PolicyVersion assembled = trace.members.front().completed;
    for (const TraceResponse& member : trace.members) {
      members.push_back(MemberSummary::Of(member.segments, member.completed, member.prefix_score));
      assembled = std::max(assembled, member.completed);
    }
    const GroupSummary group = GroupSummary::Of(trace.group, assembled, members, 0);
    Decision decision = policy_->Judge(group);
    if (guard_.has_value()) decision = guard_->Apply(group, decision, trace.served);
    PACE_RETURN_IF_ERROR(Failure());
    policy_->Observe(group, decision);
    PACE_RETURN_IF_ERROR(Failure());
    printer_.PutDraw(group, decision);
    return Status::Ok();
  }

 private:
  // The policy waits for the first step, which may say what the batch is.
  Status Begin(const TraceStep& first) {
    if (options_.policy == AdmissionKind::kPace && options_.cutoff == CutoffRule::kPool) {
      return InvalidArgument(
          "cutoff = pool: a trace does not say what the pool held (replay the events of the run)");
    }
    const bool scores = options_.ComputesScores();
    if (scores && !options_.target_occupancy.has_value() && !first.batch.has_value()) {
      return InvalidArgument(
          "target_occupancy = auto: must be a number, because the trace does not say its batch");
    }
    const int64_t batch = first.batch.value_or(1);
    PACE_ASSIGN_OR_RETURN(policy_, MakePolicy(maker_, options_, batch, seed_));
    if (first.batch.has_value()) guard_.emplace(batch, policy_->MaxBudget());
    return Status::Ok();
  }
  Status Failure() const {
    return policy_->failure() == nullptr ? Status::Ok() : *policy_->failure();
  }

  const AdmissionOptions options_;
  const uint64_t seed_;
  LinePrinter printer_;
  const PolicyMaker& maker_;
  std::unique_ptr<AdmissionPolicy> policy_;
  std::optional<ProgressGuard> guard_;
};

// The versions at which a recorded run was saved and evaluated, without the checkpoint of a
// stop, which the coordinator asks for by itself.
Status ReadSchedule(const std::string& path, CoordinatorOptions& options) {
  Result<LineReader> lines = OpenRecord(path);
  if (!lines.ok()) return lines.status();
  bool stopping = false;
  while (true) {
    PACE_ASSIGN_OR_RETURN(const bool more, lines->Next());
    if (!more) return Status::Ok();
    const auto names = [&lines](std::string_view event) {
      return lines->line().find(event) != std::string_view::npos;
    };
    if (!names("checkpoint_finished") && !names("evaluation_finished") &&
        !names("stop_requested")) {
      continue;
    }
    const Result<Event> event = EventFromJson(lines->line());
    if (!event.ok()) continue;  // the replay reports it
    if (const auto* saved = std::get_if<CheckpointFinished>(&*event)) {
      const bool scheduled =
          options.checkpoint_every > 0 && saved->step.step() % options.checkpoint_every == 0;
      if (!stopping || scheduled) options.saved.versions.insert(saved->step.step());
      options.saved.last = std::max(options.saved.last, saved->step.step());
      stopping = false;
    } else if (const auto* evaluated = std::get_if<EvaluationFinished>(&*event)) {
      options.evaluated.versions.insert(evaluated->version.step());
      options.evaluated.last = std::max(options.evaluated.last, evaluated->version.step());
    } else if (std::holds_alternative<StopRequested>(*event)) {
      stopping = true;
    }
  }
}

}  // namespace

Status ReplayTrace(const std::string& path, const AdmissionOptions& options, uint64_t seed,
                   const LineSink& sink, const PolicyMaker& maker) {
  PACE_ASSIGN_OR_RETURN(TraceReader trace, TraceReader::Open(path));
  TracePlayer player(options, seed, sink, maker);
  for (;;) {
    PACE_ASSIGN_OR_RETURN(const auto line, trace.Next());
    if (!line.has_value()) return Status::Ok();
    PACE_RETURN_IF_ERROR(
        std::visit([&player](const auto& typed) { return player.Play(typed); }, *line)
            .At(trace.Place()));
  }
}

Status ReplayEvents(const std::string& path, const std::string& snapshot_path,
                    const Settings& settings, const LineSink& sink, const PolicyMaker& maker) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, OpenRecord(path));
  LinePrinter printer(sink);
  const int64_t batch = settings.batch.num_groups;
  CoordinatorOptions options = CoordinatorOptions::Of(settings);
  options.save_at_end = true;
  PACE_RETURN_IF_ERROR(ReadSchedule(path, options));
  PACE_ASSIGN_OR_RETURN(auto admission, MakePolicy(maker, settings.admission, batch,
                                                   static_cast<uint64_t>(settings.run.seed)));
  Coordinator coordinator(options, std::move(admission), MakeSupplyPolicy(settings.supply, batch),
                          &printer);
  if (!snapshot_path.empty()) {
    PACE_RETURN_IF_ERROR(RestoreFrom(snapshot_path, coordinator, printer));
  }
  const int64_t num_passed_over = coordinator.num_events();
  for (int64_t number = 0;; ++number) {
    PACE_ASSIGN_OR_RETURN(const auto more, lines.Next());
    if (!more && number < num_passed_over) {
      return InvalidArgument(path, ": holds ", number, " events, the snapshot was taken after ",
                             num_passed_over, " (is it of this run?)");
    }
    if (!more) return Status::Ok();
    if (number < num_passed_over) continue;
    const Result<Event> event = EventFromJson(lines.line());
    if (!event.ok()) return lines.Locate(event.status());
    PACE_RETURN_IF_ERROR(lines.Locate(coordinator.Validate(*event)));
    coordinator.Handle(*event);
    if (coordinator.failed()) return lines.Locate(coordinator.failure());
  }
}

Result<bool> HoldsEvents(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, OpenRecord(path));
  PACE_ASSIGN_OR_RETURN(const auto more, lines.Next());
  return more && lines.line().find("\"event\"") != std::string_view::npos;
}

}  // namespace pace
