#include "record/response_record.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/concat.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "core/utf8.h"

namespace pace {
namespace {

constexpr int64_t kMaxStep = 1'000'000'000'000;
constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max();
constexpr double kMaxReal = std::numeric_limits<double>::max();
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

void PutText(JsonWriter& json, std::string_view key, std::string_view text) {
  json.Put(key, IsWellFormed(text) ? std::string(text) : ReplaceIllFormed(text));
}

void PutTexts(JsonWriter& json, const ResponseRecord& record) {
  PutText(json, "answer", record.answer);
  json.Key("extracted");
  record.extracted.has_value() ? json.Value(ReplaceIllFormed(*record.extracted))
                               : json.Value(nullptr);
  PutText(json, "prompt", record.prompt);
  json.Key("turns");
  json.BeginArray();
  for (const ResponseTurn& turn : record.turns) {
    json.BeginObject();
    json.Put("by", turn.is_tool ? "tool" : "policy");
    PutText(json, "text", turn.text);
    json.EndObject();
  }
  json.EndArray();
}

void ReadTurns(JsonScanner& scan, std::vector<ResponseTurn>& turns) {
  std::string word;
  scan.EnterArray();
  while (scan.NextItem()) {
    ResponseTurn turn;
    scan.EnterObject();
    while (scan.NextKey()) {
      if (scan.key() == "text") {
        scan.Text(turn.text);
      } else if (scan.key() == "by") {
        scan.Text(word);
        turn.is_tool = word == "tool";
      } else {
        scan.Skip();
      }
    }
    if (turns.size() == kMostTurns) scan.Fail("too many turns");
    turns.push_back(std::move(turn));
  }
}

void ReadPicked(JsonScanner& scan, std::vector<std::string>& picked) {
  scan.EnterArray();
  while (scan.NextItem()) {
    picked.emplace_back();
    scan.Text(picked.back());
    if (picked.size() > kMostPicked) scan.Fail("too many roles");
  }
}

void ReadReason(JsonScanner& scan, ResponseRecord& record) {
  std::string word;
  if (!scan.Text(word)) return;
  record.head.reason = ReasonFromName(word);
  if (!record.head.reason.has_value()) {
    scan.FailValue(word, "must be a reason that pace writes", "");
  }
}

bool ReadNumber(JsonScanner& scan, ResponseRecord& record) {
  const std::string_view key = scan.key();
  const auto real = [&scan](double& out) {
    if (!scan.TakeNull()) scan.Real(-kMaxReal, kMaxReal, "", out);
  };
  if (key == "step") {
    scan.Integer(0, kMaxStep, "", record.head.step);
  } else if (key == "group") {
    scan.Integer(0, kMaxInteger, "", record.head.group);
  } else if (key == "member") {
    scan.Integer(0, kMaxInteger, "", record.head.member);
  } else if (key == "problem") {
    scan.Integer(0, kMaxInteger, "", record.problem);
  } else if (key == "length") {
    scan.Integer(0, kMaxInteger, "", record.length);
  } else if (key == "reward") {
    real(record.head.reward);
  } else if (key == "waiting") {
    real(record.waiting);
  } else if (key == "generation") {
    real(record.generation);
  } else if (key == "lag") {
    real(record.lag);
  } else {
    return false;
  }
  return true;
}

void ReadExtracted(JsonScanner& scan, ResponseRecord& record) {
  if (scan.TakeNull()) return;
  record.extracted.emplace();
  scan.Text(*record.extracted);
}

}  // namespace

std::string ResponseLine(const ResponseRecord& record) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Put("step", record.head.step);
  if (!record.benchmark.empty()) PutText(json, "benchmark", record.benchmark);
  json.Put("group", record.head.group);
  json.Put("member", record.head.member);
  json.Put("problem", record.problem);
  if (record.head.reason.has_value()) {
    json.Put("verdict", Name(record.admitted ? Verdict::kAdmit : Verdict::kReject));
    json.Put("reason", Name(*record.head.reason));
    json.Put("waiting", record.waiting);
    json.Put("generation", record.generation);
    json.Put("lag", record.lag);
  }
  json.Put("reward", record.head.reward);
  json.Put("correct", record.correct);
  json.Put("finish", record.finish);
  json.Put("length", record.length);
  if (!record.picked.empty()) {
    json.Key("picked");
    json.BeginArray();
    for (const std::string& role : record.picked) json.Value(role);
    json.EndArray();
  }
  PutTexts(json, record);
  json.EndObject();
  return line;
}

Result<ResponseRecord> ParseResponseLine(std::string_view line) {
  ResponseRecord record;
  JsonScanner scan(line);
  std::string word;
  bool has_step = false, has_turns = false;
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string key(scan.key());
    has_step = has_step || key == "step";
    if (key == "verdict") {
      if (scan.Text(word)) record.admitted = word == Name(Verdict::kAdmit);
    } else if (key == "reason") {
      ReadReason(scan, record);
    } else if (key == "turns") {
      ReadTurns(scan, record.turns);
      has_turns = true;
    } else if (key == "picked") {
      ReadPicked(scan, record.picked);
    } else if (key == "correct") {
      scan.Bool(record.correct);
    } else if (key == "benchmark") {
      scan.Text(record.benchmark);
    } else if (key == "finish") {
      scan.Text(record.finish);
    } else if (key == "answer") {
      scan.Text(record.answer);
    } else if (key == "prompt") {
      scan.Text(record.prompt);
    } else if (key == "extracted") {
      ReadExtracted(scan, record);
    } else if (!ReadNumber(scan, record)) {
      scan.Skip();  // a later pace may say more
    }
  }
  scan.End();
  if (!has_step) scan.Fail("missing key step");
  if (!has_turns) scan.Fail("missing key turns");
  if (!scan.ok()) return scan.status();
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
