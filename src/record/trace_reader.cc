#include "record/trace_reader.h"

#include <utility>

#include "core/json_scanner.h"
#include "record/run_files.h"

namespace pace {
namespace {

// Remembers which keys of an object came, to find duplicates and gaps.
class KeySet {
 public:
  explicit KeySet(JsonScanner& scan) : scan_(scan) {}

  // Whether the scanner stands at this key, for the first time.
  bool Is(std::string_view name, unsigned bit) {
    if (scan_.key() != name) return false;
    if ((seen_ & bit) != 0) scan_.Fail("given twice in one object");
    seen_ |= bit;
    return scan_.ok();
  }
  bool Has(unsigned bit) const { return (seen_ & bit) != 0; }

  void Require(std::string_view name, unsigned bit) {
    if (!Has(bit)) scan_.Fail(Concat("missing key ", name));
  }

 private:
  JsonScanner& scan_;
  unsigned seen_ = 0;
};

bool ReadVersion(JsonScanner& scan, PolicyVersion& out) {
  int64_t step = 0;
  if (!scan.Integer(0, kMaxTraceVersion, "versions count steps", step)) return false;
  out = PolicyVersion(step);
  return true;
}

void ReadServed(JsonScanner& scan, std::optional<PolicyVersion>& out) {
  if (scan.TakeNull()) return;
  PolicyVersion version;
  if (ReadVersion(scan, version)) out = version;
}

void ReadSegments(JsonScanner& scan, TraceResponse& member) {
  scan.EnterArray();
  while (scan.NextItem()) {
    Segment segment;
    scan.EnterArray();
    if (!scan.NextItem()) {
      scan.Fail("must be [version, tokens]");
      return;
    }
    if (!ReadVersion(scan, segment.version)) return;
    if (!member.segments.empty() && segment.version < member.segments.back().version) {
      scan.FailValue(Concat(segment.version), Concat("must be >= ", member.segments.back().version),
                     "segments are in generation order");
      return;
    }
    if (!scan.NextItem()) {
      scan.Fail("must be [version, tokens]");
      return;
    }
    scan.Integer(1, kMaxTraceTokens, "leave an empty segment out", segment.num_tokens);
    if (scan.NextItem()) scan.Fail("must be [version, tokens], nothing more");
    member.segments.push_back(segment);
  }
  if (member.segments.empty()) scan.Fail("must hold at least one segment");
}

void ReadMember(JsonScanner& scan, TraceResponse& member) {
  enum : unsigned { kCompleted = 1, kSegments = 2, kPrefixScore = 4 };
  KeySet keys(scan);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (keys.Is("completed", kCompleted)) {
      ReadVersion(scan, member.completed);
    } else if (keys.Is("segments", kSegments)) {
      ReadSegments(scan, member);
    } else if (keys.Is("prefix_score", kPrefixScore)) {
      double score = 0;
      if (!scan.TakeNull() &&
          scan.Real(0, kMaxTracePrefixScore, "a mean of absolute differences", score)) {
        member.prefix_score = score;
      }
    } else {
      scan.FailUnknownKey();
    }
  }
  keys.Require("completed", kCompleted);
  keys.Require("segments", kSegments);
  keys.Require("prefix_score", kPrefixScore);
  if (scan.ok() && member.segments.back().version > member.completed) {
    scan.FailField("completed", Concat(member.completed),
                   Concat("must be >= ", member.segments.back().version,
                          " (a response cannot finish before a version that sampled it)"));
  }
}

void ReadMembers(JsonScanner& scan, TraceGroup& group) {
  scan.EnterArray();
  while (scan.NextItem()) ReadMember(scan, group.members.emplace_back());
  if (group.members.empty()) scan.Fail("must hold at least one member");
}

enum LineKey : unsigned {
  kStep = 1,
  kOccupancy = 2,
  kBatch = 4,
  kServed = 8,
  kGroup = 16,
  kMembers = 32,
};

}  // namespace

Result<TraceLine> ParseTraceLine(std::string_view line) {
  JsonScanner scan(line);
  KeySet keys(scan);
  TraceStep step;
  TraceGroup group;
  std::optional<PolicyVersion> served;
  int64_t count = 0;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (keys.Is("step", kStep)) {
      ReadVersion(scan, step.step);
    } else if (keys.Is("occupancy", kOccupancy)) {
      scan.Integer(0, kMaxTraceCount, "groups in the pool", step.occupancy);
    } else if (keys.Is("batch", kBatch)) {
      if (scan.Integer(1, kMaxTraceCount, "groups a step trains on", count)) step.batch = count;
    } else if (keys.Is("served", kServed)) {
      ReadServed(scan, served);
    } else if (keys.Is("group", kGroup)) {
      if (scan.Integer(0, kMaxTraceCount, "", count)) group.group = GroupId(count);
    } else if (keys.Is("members", kMembers)) {
      ReadMembers(scan, group);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (keys.Has(kStep)) {
    keys.Require("occupancy", kOccupancy);
    if (keys.Has(kGroup) || keys.Has(kMembers)) {
      scan.Fail("a line is a step or a group, not both");
    }
    step.served = served;
    if (scan.ok()) return TraceLine(step);
    return scan.status();
  }
  if (!keys.Has(kGroup)) scan.Fail("missing key step or group");
  keys.Require("members", kMembers);
  if (keys.Has(kOccupancy)) scan.Fail("occupancy: unknown key of a group line");
  if (keys.Has(kBatch)) scan.Fail("batch: unknown key of a group line");
  group.served = served;
  group.states_served = keys.Has(kServed);
  if (!scan.ok()) return scan.status();
  return TraceLine(std::move(group));
}

Result<TraceReader> TraceReader::Open(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(LineReader lines, OpenRecord(path));
  return TraceReader(std::move(lines));
}

Result<std::optional<TraceLine>> TraceReader::Next() {
  PACE_ASSIGN_OR_RETURN(const bool more, lines_.Next());
  if (!more) return std::optional<TraceLine>();
  Result<TraceLine> line = ParseTraceLine(lines_.line());
  if (!line.ok()) return lines_.Locate(line.status());
  const Status accepted = std::visit([this](auto& parsed) { return Accept(parsed); }, line.value());
  if (!accepted.ok()) return accepted.At(lines_.Place());
  return std::optional<TraceLine>(std::move(*line));
}

Status TraceReader::Accept(TraceStep& step) {
  if (step_.has_value() && step.step <= *step_) {
    return InvalidArgument("step = ", step.step, ": must be > ", *step_, " (steps increase)");
  }
  if (step.served.has_value() && *step.served > step.step) {
    return InvalidArgument("served = ", *step.served, ": must be <= step = ", step.step,
                           " (no worker is ahead of the trainer)");
  }
  step_ = step.step;
  served_ = step.served;
  return Status::Ok();
}

Status TraceReader::Accept(TraceGroup& group) {
  if (!step_.has_value()) {
    return InvalidArgument("group = ", group.group,
                           ": must follow a step line (a draw belongs to a step)");
  }
  for (size_t i = 0; i < group.members.size(); ++i) {
    if (group.members[i].completed <= *step_) continue;
    return InvalidArgument("members[", i, "].completed = ", group.members[i].completed,
                           ": must be <= step = ", *step_,
                           " (a group is drawn after it is complete)");
  }
  if (group.served.has_value() && *group.served > *step_) {
    return InvalidArgument("served = ", *group.served, ": must be <= step = ", *step_,
                           " (no worker is ahead of the trainer)");
  }
  if (!seen_.insert(group.group).second) {
    return InvalidArgument("group = ", group.group, ": must be drawn once (it came before)");
  }
  if (group.states_served) served_ = group.served;
  group.served = served_;
  return Status::Ok();
}

}  // namespace pace
