#include "judge/reward_request.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/json_scanner.h"
#include "core/json_writer.h"

namespace pace {
namespace {

// Whether the text is one JSON object.
bool IsObject(std::string_view json) {
  JsonScanner scan(json);
  if (scan.NextKind() != JsonScanner::Kind::kObject) return false;
  scan.Skip();
  scan.End();
  return scan.ok();
}

void PutRequest(JsonWriter& json, const RewardRequest& request) {
  json.BeginObject();
  json.Put("id", request.id);
  json.Put("response", request.response);
  json.Put("answer", request.answer);
  json.Put("prompt", request.prompt);
  json.Put("data_source", request.data_source);
  json.Put("ability", request.ability);
  json.Put("extra_info", request.extra_info);
  json.Key("tokens");
  json.BeginArray();
  for (const int32_t token : request.tokens) json.Value(token);
  json.EndArray();
  json.Put("num_turns", request.num_turns);
  json.Put("num_tool_calls", request.num_tool_calls);
  json.EndObject();
}

RewardReply ParseReply(JsonScanner& scan) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  RewardReply reply;
  bool has_score = false;
  std::optional<bool> correct;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "error") {
      reply.fault = RewardFault::kException;
      scan.Text(reply.message);
    } else if (scan.key() == "invalid") {
      reply.fault = RewardFault::kInvalid;
      scan.Text(reply.message);
    } else if (scan.key() == "later") {
      scan.Bool(reply.later);
    } else if (scan.key() == "score") {
      has_score = scan.Real(-kLargest, kLargest, "", reply.score);
    } else if (scan.key() == "correct") {
      scan.Bool(correct.emplace());
    } else if (scan.key() == "extracted") {
      if (!scan.TakeNull()) scan.Text(reply.extracted.emplace());
    } else if (scan.key() == "detail") {
      scan.Text(reply.detail);
    } else {
      scan.FailUnknownKey();
    }
  }
  if (!scan.ok() || reply.later) return reply;
  if (!reply.ok()) return RewardReply::Failed(reply.fault, OneLine(reply.message));
  if (!has_score) return RewardReply::Failed(RewardFault::kInvalid, "gave no score");
  if (reply.detail.size() > kMaxDetailBytes) {
    return RewardReply::Failed(RewardFault::kInvalid, Concat("gave ", reply.detail.size(),
                                                             " bytes beside the score; at most ",
                                                             kMaxDetailBytes, " are recorded"));
  }
  if (!reply.detail.empty() && !IsObject(reply.detail)) {
    return RewardReply::Failed(RewardFault::kInvalid, "gave a detail that is no JSON object");
  }
  reply.correct = correct.value_or(reply.score > 0);
  return reply;
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string out(text.substr(0, kMaxRewardMessageBytes));
  // No part of a character at the end.
  if (out.size() < text.size()) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xc0) out.pop_back();
  }
  for (char& c : out) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) c = ' ';
  }
  return out;
}

std::string_view Name(RewardFault fault) {
  switch (fault) {
    case RewardFault::kNone:
      return "none";
    case RewardFault::kException:
      return "exception";
    case RewardFault::kTimeout:
      return "timeout";
    case RewardFault::kCrash:
      return "crash";
    case RewardFault::kInvalid:
      return "invalid";
  }
  return "";
}

RewardReply RewardReply::Failed(RewardFault fault, std::string message) {
  RewardReply reply;
  reply.fault = fault;
  reply.message = std::move(message);
  return reply;
}

std::string BatchJson(int64_t batch, std::span<const RewardRequest* const> requests) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("batch", batch);
  json.Key("items");
  json.BeginArray();
  for (const RewardRequest* request : requests) PutRequest(json, *request);
  json.EndArray();
  json.EndObject();
  return out;
}

Result<std::string> ParseReady(std::string_view json) {
  bool ready = false;
  std::string error, offers;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "ready") {
      scan.Bool(ready);
    } else if (scan.key() == "error") {
      scan.Text(error);
    } else if (scan.key() == "offers") {
      scan.Text(offers);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  PACE_RETURN_IF_ERROR(scan.status());
  if (!ready) return InvalidArgument(OneLine(error));
  return offers;
}

Result<std::vector<RewardReply>> ParseReplies(std::string_view json, int64_t batch, size_t size) {
  std::vector<RewardReply> replies;
  int64_t answered = -1;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "batch") {
      scan.Integer(0, std::numeric_limits<int64_t>::max(), "", answered);
    } else if (scan.key() == "results") {
      scan.EnterArray();
      while (scan.NextItem()) replies.push_back(ParseReply(scan));
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  PACE_RETURN_IF_ERROR(scan.status());
  if (answered != batch) {
    return InvalidArgument("answered batch ", answered, " instead of ", batch);
  }
  if (replies.size() != size) {
    return InvalidArgument("gave ", replies.size(), " results for ", size, " responses");
  }
  return replies;
}

}  // namespace pace
