// What a reward function is asked about one response, what it said, and both as JSON.
//
// Thread-safety: values and pure functions.
#ifndef PACE_JUDGE_REWARD_REQUEST_H_
#define PACE_JUDGE_REWARD_REQUEST_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pace {

// One response and the problem it answers. The function gets the fields by these names.
struct RewardRequest {
  std::string id = {};        // the problem's
  std::string response = {};  // text of the policy's last turn
  std::string answer = {};
  std::string prompt = {};  // JSON: a text, or a list of {role, content}
  std::string data_source = {};
  std::string ability = {};
  std::string extra_info = {};       // JSON
  std::vector<int32_t> tokens = {};  // of the response, tool tokens included
  int64_t num_turns = 2;
  int64_t num_tool_calls = 0;
};

enum class RewardFault {
  kNone,
  kException,  // the function raised
  kTimeout,    // it did not return in time
  kCrash,      // its process ended
  kInvalid,    // it returned something that is no reward
};
std::string_view Name(RewardFault fault);

struct RewardReply {
  RewardFault fault = RewardFault::kNone;
  std::string message = {};  // one line, where there is a fault
  double score = 0;
  bool correct = false;
  std::optional<std::string> extracted = {};
  // Further keys that the function returned: a JSON object, or empty.
  std::string detail = {};
  // The process had no time left for this response: it has to be asked again.
  bool later = false;

  bool ok() const { return fault == RewardFault::kNone; }
  static RewardReply Failed(RewardFault fault, std::string message);
};

// Bounds of what a process may say.
inline constexpr size_t kMaxRewardBytes = size_t{4} << 20;  // of one message
inline constexpr size_t kMaxDetailBytes = 4096;             // of one response's detail
inline constexpr size_t kMaxRewardMessageBytes = 500;       // of one fault

// The beginning of a text, without line breaks.
std::string OneLine(std::string_view text);

// {"batch": 7, "items": [{"id": ..., "response": ...}, ...]}
std::string BatchJson(int64_t batch, std::span<const RewardRequest* const> requests);

// {"ready": true, "offers": "..."} or {"ready": false, "error": "..."}: what a process says first.
// What it offers: schemas of tools, a JSON list, or the methods of a policy; empty for rewards.
Result<std::string> ParseReady(std::string_view json);

// {"batch": 7, "results": [{"score": 1, "correct": true, "extracted": null, "detail": "{}"},
//                          {"error": "ValueError: ..."}, {"later": true}]}
// An error unless it answers this batch with this number of results.
Result<std::vector<RewardReply>> ParseReplies(std::string_view json, int64_t batch, size_t size);

}  // namespace pace

#endif  // PACE_JUDGE_REWARD_REQUEST_H_
