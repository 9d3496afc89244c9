// The kinds whose cases compare texts: `hermes`, `truncation`, `dapo` and `equivalence`.
#include <optional>

#include "conformance/case_file.h"
#include "core/printable.h"
#include "reward/verifier.h"
#include "text/hermes.h"
#include "text/truncation.h"

namespace pace {
namespace {

std::string Show(const HermesMessage& message) {
  std::string out = message.content;
  for (const ToolCall& call : message.calls) {
    out += Concat("\n[call ", call.name, " ", call.arguments, "]");
  }
  return out;
}

// Tool calls taken out of a model's text.
Status CheckHermesCase(const Value& entry, const std::string& where, Tally& tally) {
  const Value decoded = FieldOf(entry, "decoded");
  PACE_ASSIGN_OR_RETURN(const std::string text,
                        decoded.is_text() ? decoded.text() : TextField(entry, "text", where));
  PACE_ASSIGN_OR_RETURN(const std::string content, TextField(entry, "content", where));
  PACE_ASSIGN_OR_RETURN(const ValueList calls, ListField(entry, "calls", where));
  HermesMessage expected{content, {}};
  for (const Value& call : calls) {
    PACE_ASSIGN_OR_RETURN(const std::string function, TextField(call, "name", where));
    PACE_ASSIGN_OR_RETURN(const std::string given, TextField(call, "arguments", where));
    expected.calls.push_back({function, given});
  }
  CompareText(tally, where, "content and calls", Show(ParseHermes(text)), Show(expected));
  return Status::Ok();
}

// Tool responses cut to a number of characters.
Status CheckTruncationCase(const Value& entry, const std::string& where, Tally& tally) {
  PACE_ASSIGN_OR_RETURN(const std::string text, TextField(entry, "text", where));
  PACE_ASSIGN_OR_RETURN(const std::string expected, TextField(entry, "result", where));
  PACE_ASSIGN_OR_RETURN(const std::string side_name, TextField(entry, "side", where));
  const std::optional<TruncationSide> side = TruncationSideFromName(side_name);
  const Value length = FieldOf(entry, "max_length");
  if (!side.has_value() || !length.is_integer() || length.integer() < 0) {
    return InvalidArgument(where, ": needs side left, right or middle and max_length >= 0");
  }
  CompareText(tally, where, "result", TruncateToolResponse(text, length.integer(), *side),
              expected);
  return Status::Ok();
}

// A text, or none for null.
Result<std::optional<std::string>> OptionalText(const Value& object, std::string_view name,
                                                const std::string& where) {
  const Value field = FieldOf(object, name);
  if (field.is_none()) return std::optional<std::string>();
  PACE_ASSIGN_OR_RETURN(const std::string text, TextField(object, name, where));
  return std::optional<std::string>(text);
}

// True and false, or 1 and 0.
Result<bool> BoolField(const Value& object, std::string_view name, const std::string& where) {
  const Value field = FieldOf(object, name);
  if (field.is_bool()) return field.boolean();
  if (field.is_integer() && (field.integer() == 0 || field.integer() == 1)) {
    return field.integer() == 1;
  }
  return InvalidArgument(where, ": ", name, ": must be true or false");
}

std::string Show(const Verification& seen) {
  return Concat(seen.correct ? "right" : "wrong", ", score ", seen.score, ", ",
                seen.extracted.has_value() ? "'" + *seen.extracted + "'" : "no answer");
}

// verl's rule for DAPO answers, with and without the strict box.
Status CheckDapoCase(const Value& entry, const std::string& where, Tally& tally) {
  PACE_ASSIGN_OR_RETURN(const std::string solution, TextField(entry, "solution", where));
  PACE_ASSIGN_OR_RETURN(const std::string gold, TextField(entry, "gold", where));
  PACE_ASSIGN_OR_RETURN(const bool strict, BoolField(entry, "strict_box", where));
  PACE_ASSIGN_OR_RETURN(const bool correct, BoolField(entry, "acc", where));
  PACE_ASSIGN_OR_RETURN(const std::optional<std::string> extracted,
                        OptionalText(entry, "pred", where));
  const Value score = FieldOf(entry, "score");
  if (!score.is_real() && !score.is_integer()) {
    return InvalidArgument(where, ": score: must be a number");
  }
  const double points = score.is_real() ? score.real() : static_cast<double>(score.integer());
  const Verification expected = {correct, points, extracted};
  const VerifierMode mode = strict ? VerifierMode::kDapoStrict : VerifierMode::kDapo;
  CompareText(tally, where, Name(mode), Show(Verify(mode, solution, gold)), Show(expected));
  return Status::Ok();
}

// Whether two answers say the same.
Status CheckEquivalenceCase(const Value& entry, const std::string& where, Tally& tally) {
  PACE_ASSIGN_OR_RETURN(const std::string gold, TextField(entry, "gold", where));
  PACE_ASSIGN_OR_RETURN(const std::string answer, TextField(entry, "pred", where));
  PACE_ASSIGN_OR_RETURN(const bool wanted, BoolField(entry, "expected", where));
  const Verification seen = Verify(VerifierMode::kEquivalence, answer, gold);
  if (seen.correct == wanted) {
    tally.Pass();
  } else {
    tally.Fail(Concat(where, ": ours ", seen.correct ? "the same" : "different", ", expected ",
                      wanted ? "the same" : "different", ": ", Printable(gold), " and ",
                      Printable(seen.extracted.value_or("no answer"))));
  }
  return Status::Ok();
}

}  // namespace

Status CheckHermes(const KindArguments& arguments, Tally& tally) {
  return CheckCases(arguments.paths, tally, CheckHermesCase);
}
Status CheckTruncation(const KindArguments& arguments, Tally& tally) {
  return CheckCases(arguments.paths, tally, CheckTruncationCase);
}
Status CheckDapo(const KindArguments& arguments, Tally& tally) {
  return CheckCases(arguments.paths, tally, CheckDapoCase);
}
Status CheckEquivalence(const KindArguments& arguments, Tally& tally) {
  return CheckCases(arguments.paths, tally, CheckEquivalenceCase);
}

}  // namespace pace
