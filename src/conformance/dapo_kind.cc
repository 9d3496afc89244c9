// `dapo`: verl's rule for DAPO answers, with and without the strict box.
#include <optional>

#include "conformance/case_list.h"
#include "reward/verifier.h"

namespace pace {
namespace {

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

Status CheckCase(const Value& entry, const std::string& where, Tally& tally) {
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

}  // namespace

Status CheckDapo(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) {
    PACE_ASSIGN_OR_RETURN(const ValueList cases, ReadCaseList(path));
    for (size_t i = 0; i < cases.size(); ++i) {
      PACE_RETURN_IF_ERROR(CheckCase(cases[i], Concat(path, ": cases[", i, "]"), tally));
    }
  }
  return Status::Ok();
}

}  // namespace pace
