#include "record/response_record.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/concat.h"
#include "core/json_record.h"
#include "core/utf8.h"

namespace pace {
namespace {

constexpr int64_t kMaxStep = 1'000'000'000'000;
constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();
constexpr size_t kMostTurns = 4096;
constexpr size_t kMostPicked = 32;
constexpr int64_t kFirstSteps = 64;  // all of them are sampled

// A number for each response, as good as drawn.
uint64_t Lot(const ResponseHead& head) {
  uint64_t x = 0x9e3779b97f4a7c15;
  for (const int64_t part : {head.step, head.group, head.member}) {
    x ^= static_cast<uint64_t>(part) + 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
  }
  return x;
}

// Half of the lots stand for one random response, half for the other.
bool IsOddLot(const ResponseHead& head) {
  return (Lot(head) & 1) != 0;
}

// Values as responses.jsonl has them.
struct Mended {  // a text, mended where it is not UTF-8
  std::string& text;
};
void WriteJson(JsonWriter& json, const Mended& mended) {
  json.Value(ReplaceIllFormed(mended.text));
}
void ReadJson(JsonScanner& scan, const Mended& mended) {
  scan.Text(mended.text);
}
struct Real {  // any number, or null
  double& value;
};
void WriteJson(JsonWriter& json, const Real& real) {
  json.Value(real.value);
}
void ReadJson(JsonScanner& scan, const Real& real) {
  if (!scan.TakeNull()) scan.Real(-kLargestJsonReal, kLargestJsonReal, "", real.value);
}
struct OneOf {  // one of two words
  bool& value;
  std::string_view if_true, if_false;
};
void WriteJson(JsonWriter& json, const OneOf& word) {
  json.Value(word.value ? word.if_true : word.if_false);
}
void ReadJson(JsonScanner& scan, const OneOf& word) {
  std::string text;
  if (scan.Text(text)) word.value = text == word.if_true;
}

}  // namespace

template <typename V>
void JsonKeys(V& v, ResponseTurn& turn) {
  v.Optional("by", OneOf{turn.is_tool, "tool", "policy"});
  v.Optional("text", Mended{turn.text});
  v.SkipUnknown();
}
template <typename V>
void JsonKeys(V& v, ResponseRecord& record) {
  ResponseHead& head = record.head;
  const bool judged = head.reason.has_value();
  v("step", Within(head.step, 0, kMaxStep));
  v.Optional("benchmark", Mended{record.benchmark}, !record.benchmark.empty());
  v.Optional("group", Within(head.group, 0, kMaxInteger));
  v.Optional("member", Within(head.member, 0, kMaxInteger));
  v.Optional("problem", Within(record.problem, 0, kMaxInteger));
  v.Optional("verdict", OneOf{record.admitted, Name(Verdict::kAdmit), Name(Verdict::kReject)},
             judged);
  v.Optional("reason", AsName(head.reason, ReasonFromName, "must be a reason that pace writes"),
             judged);
  v.Optional("waiting", Real{record.waiting}, judged);
  v.Optional("generation", Real{record.generation}, judged);
  v.Optional("lag", Real{record.lag}, judged);
  v.Optional("reward", Real{head.reward});
  v.Optional("correct", record.correct);
  v.Optional("finish", record.finish);
  v.Optional("length", Within(record.length, 0, kMaxInteger));
  v.Optional("picked", record.picked, !record.picked.empty());
  v.Optional("answer", Mended{record.answer});
  v.Optional("extracted", record.extracted);
  v.Optional("prompt", Mended{record.prompt});
  v("turns", record.turns);
  v.SkipUnknown();  // a later pace may say more
}

std::string ResponseLine(const ResponseRecord& record) {
  if (!record.extracted.has_value() || IsWellFormed(*record.extracted)) return JsonOf(record);
  ResponseRecord mended = record;
  mended.extracted = ReplaceIllFormed(*record.extracted);
  return JsonOf(mended);
}

Result<ResponseRecord> ParseResponseLine(std::string_view line) {
  ResponseRecord record;
  PACE_RETURN_IF_ERROR(FromJson(line, record));
  if (record.turns.size() > kMostTurns) return InvalidArgument("turns: too many turns");
  if (record.picked.size() > kMostPicked) return InvalidArgument("picked: too many roles");
  return record;
}

std::string CutMiddle(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  const auto inside = [&text](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  size_t head = most / 2;
  while (head > 0 && inside(head)) --head;
  size_t tail = text.size() - (most - most / 2);
  while (tail < text.size() && inside(tail)) ++tail;
  return Concat(text.substr(0, head), "\n[... ", tail - head, " bytes left out ...]\n",
                text.substr(tail));
}

void CutTexts(ResponseRecord& record, size_t most) {
  record.prompt = CutMiddle(record.prompt, most);
  record.answer = CutMiddle(record.answer, most);
  if (record.extracted.has_value()) record.extracted = CutMiddle(*record.extracted, most);
  size_t total = 0;
  for (const ResponseTurn& turn : record.turns) total += turn.text.size();
  if (total <= most) return;
  // Turns of many calls share the room.
  const size_t each = std::max<size_t>(256, most / record.turns.size());
  for (ResponseTurn& turn : record.turns) turn.text = CutMiddle(turn.text, each);
}

std::vector<ResponsePicker::Slot> ResponsePicker::SlotsOf(const ResponseHead& head) {
  std::vector<Slot> slots = {{.role = Role::kBest},
                             {.role = Role::kWorst},
                             {.role = IsOddLot(head) ? Role::kOtherRandom : Role::kRandom}};
  if (head.reason.has_value()) slots.push_back({.role = Role::kReason, .reason = *head.reason});
  return slots;
}

bool ResponsePicker::Precedes(Role role, const ResponseHead& a, const ResponseHead& b) {
  if (role == Role::kBest && a.reward != b.reward) return a.reward > b.reward;
  if (role == Role::kWorst && a.reward != b.reward) return a.reward < b.reward;
  // Later ones show what the policy has become; but not at random.
  const bool is_random = role == Role::kRandom || role == Role::kOtherRandom;
  if (!is_random && a.step != b.step) return a.step > b.step;
  return Lot(a) < Lot(b);
}

std::string ResponsePicker::NameOf(const Slot& slot) {
  switch (slot.role) {
    case Role::kBest:
      return "best";
    case Role::kWorst:
      return "worst";
    case Role::kRandom:
    case Role::kOtherRandom:
      return "random";
    case Role::kReason:
      break;
  }
  return std::string(Name(slot.reason));
}

bool ResponsePicker::Wants(const ResponseHead& head) const {
  const std::vector<Slot> slots = SlotsOf(head);
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
    const auto found = roles_.find(slot);
    return found == roles_.end() || Precedes(slot.role, head, found->second.head);
  });
}

void ResponsePicker::Add(ResponseRecord record) {
  for (const Slot& slot : SlotsOf(record.head)) {
    const auto found = roles_.find(slot);
    if (found == roles_.end()) {
      roles_.emplace(slot, record);
    } else if (Precedes(slot.role, record.head, found->second.head)) {
      found->second = record;
    }
  }
}

std::vector<ResponseRecord> ResponsePicker::Take() {
  std::vector<ResponseRecord> out;
  for (auto& entry : roles_) {
    const auto& slot = entry.first;
    ResponseRecord& record = entry.second;
    const auto same = [&record](const ResponseRecord& other) {
      return other.head.step == record.head.step && other.head.group == record.head.group &&
             other.head.member == record.head.member;
    };
    auto found = std::find_if(out.begin(), out.end(), same);
    if (found == out.end()) {
      record.picked.clear();
      out.push_back(std::move(record));
      found = out.end() - 1;
    }
    found->picked.push_back(NameOf(slot));
  }
  roles_.clear();
  return out;
}

bool SamplesStep(int64_t step) {
  int64_t every = 1;
  for (int64_t bound = kFirstSteps; step >= bound; bound *= 2) every *= 2;
  return step % every == 0;
}

}  // namespace pace
