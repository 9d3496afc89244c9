// ResponseRecord: one response as text, with what was decided about it: a line of
// responses.jsonl.
//
// ResponsePicker chooses the few that people read: the best and the worst
// reward, some at random, and one for each reason of a verdict. Its choice
// depends on the records alone and not on their order.
//
//   ResponsePicker picker;
//   if (picker.Wants(head)) picker.Add(Describe(head));
//   for (ResponseRecord& record : picker.Take()) Write(record);
//
// Thread-safety: none.
#ifndef PACE_RECORD_RESPONSE_RECORD_H_
#define PACE_RECORD_RESPONSE_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/decision.h"
#include "core/status.h"

namespace pace {

// What a picker looks at.
struct ResponseHead {
  int64_t step = 0;  // that drew it; the version evaluated
  int64_t group = 0;
  int64_t member = 0;
  double reward = 0;
  std::optional<Reason> reason = {};  // of its group's verdict; none in an evaluation
};

// One turn: the policy's, or what a tool replied.
struct ResponseTurn {
  bool is_tool = false;
  std::string text = {};

  friend bool operator==(const ResponseTurn&, const ResponseTurn&) = default;
};

struct ResponseRecord {
  ResponseHead head = {};
  std::string benchmark = {};  // of an evaluation; empty in training
  int64_t problem = 0;         // the prompt's index, in its stream or benchmark
  bool admitted = true;
  bool correct = false;
  // Staleness of the group as it was drawn, and the response's own lag.
  double waiting = 0;
  double generation = 0;
  double lag = 0;
  std::string finish = {};  // stop_token, stop_string, max_tokens
  int64_t length = 0;       // policy tokens
  std::string answer = {};  // the problem's
  std::optional<std::string> extracted = {};
  std::string prompt = {};
  std::vector<ResponseTurn> turns = {};
  std::vector<std::string> picked = {};  // why: best, worst, random, the reason's name
};

// One line, without newline. Texts that are not UTF-8 are mended.
std::string ResponseLine(const ResponseRecord& record);
Result<ResponseRecord> ParseResponseLine(std::string_view line);

// At most `most` bytes of a text and a note in the middle of what was left out;
// characters stay whole.
std::string CutMiddle(std::string_view text, size_t most);
// Prompt and turns within about `most` bytes each.
void CutTexts(ResponseRecord& record, size_t most);

class ResponsePicker {
 public:
  // Whether a record would be among those taken now.
  bool Wants(const ResponseHead& head) const;
  void Add(ResponseRecord record);
  bool empty() const { return roles_.empty(); }
  // Each once, best first, and forgets them.
  std::vector<ResponseRecord> Take();

 private:
  // In the order they are shown.
  enum class Role { kBest, kWorst, kRandom, kOtherRandom, kReason };
  struct Slot {
    Role role;
    Reason reason = {};  // under kReason
    friend auto operator<=>(const Slot&, const Slot&) = default;
  };
  static std::vector<Slot> SlotsOf(const ResponseHead& head);
  static bool Precedes(Role role, const ResponseHead& a, const ResponseHead& b);
  static std::string NameOf(const Slot& slot);

  std::map<Slot, ResponseRecord> roles_;
};

// Whether a sample of this step is recorded: every step at first, then more
// rarely, 32 for each doubling of the run's length.
bool SamplesStep(int64_t step);

}  // namespace pace

#endif  // PACE_RECORD_RESPONSE_RECORD_H_
