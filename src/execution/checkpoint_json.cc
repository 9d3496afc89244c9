#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "core/json_record.h"
#include "execution/checkpoint.h"

namespace pace {
namespace {

// 1 kept responses as JSON, without settings and version.
constexpr int64_t kRunFormat = 2;

// Why a response is paused; none where the key is missing.
struct PausedFor {
  std::optional<FinishReason>& reason;
};
void ReadJson(JsonScanner& scan, const PausedFor& paused) {
  int64_t reason = 0;
  scan.Integer(0, static_cast<int64_t>(FinishReason::kStopString), "", reason);
  paused.reason = static_cast<FinishReason>(reason);
}

// Log-probabilities that are not finite were written null.
float ScanFloat(JsonScanner& scan) {
  if (scan.TakeNull()) return -std::numeric_limits<float>::infinity();
  double value = 0;
  scan.Real(-kLargestJsonReal, kLargestJsonReal, "", value);
  return static_cast<float>(value);
}

}  // namespace

// [id, version, logprob, sampled_logprob], or [id, version] of a tool token.
void ReadJson(JsonScanner& scan, TokenRecord& token) {
  int64_t id = 0;
  int64_t version = 0;
  int field = 0;
  scan.EnterArray();
  for (; scan.NextItem(); ++field) {
    if (field == 0) {
      scan.Integer(0, std::numeric_limits<TokenId>::max(), "", id);
    } else if (field == 1) {
      scan.Integer(0, kLargestJsonInteger, "", version);
    } else if (field == 2) {
      token.logprob = ScanFloat(scan);
    } else if (field == 3) {
      token.sampled_logprob = ScanFloat(scan);
    } else {
      scan.Fail("a token has four fields");
    }
  }
  if (field != 4 && field != 2) scan.Fail("a token has four fields, or two if a tool wrote it");
  token.given = field == 2;
  token.id = static_cast<TokenId>(id);
  token.version = PolicyVersion(version);
}

template <typename V>
void JsonKeys(V& v, PartialResponse& response) {
  v("tokens", response.tokens);
  v("prefix_score", response.prefix_score);
  v("awaits_score", response.awaits_score);
  v("num_interrupts", response.num_interrupts);
  v.Optional("rests", PausedFor{response.rests});
}
template <typename V>
void JsonKeys(V& v, Trajectory& trajectory) {
  v("reason", AsNumber(trajectory.reason, FinishReason::kMaxTokens));
  v("correct", trajectory.correct);
  v("reward", Within(trajectory.reward, -kLargestJsonReal, kLargestJsonReal));
  v("completed", trajectory.completed);
  JsonKeys(v, trajectory.response);
}
void ReadJson(JsonScanner& scan, FinishedTrajectory& member) {
  std::optional<Trajectory> trajectory;
  GetJson(scan, trajectory);
  if (trajectory.has_value()) member = *std::move(trajectory);
}
template <typename V>
void JsonItems(V& v, ToolRecord& record) {
  v(record.num_calls);
  v(Within(record.num_failures, 0, record.num_calls, "no more than there were calls"));
  v(record.time);
}
template <typename V>
void JsonKeys(V& v, GroupTrajectories& group) {
  v("group", group.group);
  v("prompt", group.prompt);
  v("worker", group.worker);
  v("prompt_tokens", group.prompt_tokens);
  v.Optional("greedy_last", group.greedy_last);
  v("members", group.members);
  v.Optional("tools", group.tools);
}
template <typename V>
void JsonItems(V& v, CallInFlight& call) {
  v(call.id.group);
  v(call.id.member);
  v(call.made);
  v(Within(call.due, call.made, Seconds(kLargestJsonReal), "returns after it was made"));
}
template <typename V>
void JsonKeys(V& v, RunTotals& totals) {
  v("num_trained_groups", totals.num_trained_groups);
  v("num_tokens_generated", totals.num_tokens_generated);
  v("num_tokens_never_trained", totals.num_tokens_never_trained);
  v("num_interrupted", totals.num_interrupted);
}

namespace {

// Unfinished responses as checkpoints of format 1 have them.
struct MemberInFlight {
  int64_t member = 0;
  PartialResponse response = {};
};
struct InFlightText {
  GroupId group{};
  std::vector<MemberInFlight> responses = {};
};
template <typename V>
void JsonKeys(V& v, MemberInFlight& member) {
  v("member", member.member);
  JsonKeys(v, member.response);
}
template <typename V>
void JsonKeys(V& v, InFlightText& group) {
  v("group", group.group);
  v("responses", group.responses);
}

struct RunText {
  RunCheckpoint& run;
  int64_t format = kRunFormat;
  // Since format 2.
  std::optional<std::string> version = {};
  std::optional<std::string> commit = {};
};
template <typename V>
void JsonKeys(V& v, RunText& text) {
  RunCheckpoint& run = text.run;
  v("format", Within(text.format, 1, kRunFormat, "written by another version of pace"));
  v.Optional("pace", text.version);
  v.Optional("commit", text.commit);
  v("step", run.step);
  v("served", run.served);
  v("time", run.time);
  v("part", AsNumber(run.step_clock.part, StepPart::kOther));
  v("part_since", run.step_clock.last);
  v("parts", run.step_clock.parts);
  v("rescoring", run.rescoring);
  v.Optional("busy", run.busy);
  v("totals", run.totals);
  v("step_totals", run.step_totals);
  v.Optional("calls", run.calls, !run.calls.empty());
  v("record_sizes", run.record_sizes);
}

}  // namespace

Result<GroupTrajectories> GroupFromJson(std::string_view text) {
  GroupTrajectories group;
  PACE_RETURN_IF_ERROR(FromJson(text, group));
  PACE_RETURN_IF_ERROR(CheckShape(group));
  return group;
}

Result<GroupInFlight> InFlightFromJson(std::string_view text) {
  InFlightText read;
  PACE_RETURN_IF_ERROR(FromJson(text, read));
  GroupInFlight group = {.group = read.group};
  for (MemberInFlight& member : read.responses) {
    group.members.push_back(member.member);
    group.responses.push_back(std::move(member.response));
  }
  return group;
}

std::string RunToJson(const RunCheckpoint& run) {
  // Writing changes nothing.
  return JsonOf(RunText{.run = const_cast<RunCheckpoint&>(run),
                        .version = run.version,
                        .commit = run.commit}) +
         "\n";
}

Status RunFromJson(std::string_view text, RunCheckpoint& run) {
  RunText read{.run = run};
  PACE_RETURN_IF_ERROR(FromJson(text, read));
  for (const auto& [name, value] : {std::pair{"pace", &read.version}, {"commit", &read.commit}}) {
    if (read.format >= 2 && !value->has_value()) return InvalidArgument("missing key ", name);
  }
  run.version = read.version.value_or("");
  run.commit = read.commit.value_or("");
  return Status::Ok();
}

}  // namespace pace
