// `equivalence`: whether two answers say the same.
#include "conformance/case_list.h"
#include "core/printable.h"
#include "reward/verifier.h"

namespace pace {
namespace {

Status CheckCase(const Value& entry, const std::string& where, Tally& tally) {
  PACE_ASSIGN_OR_RETURN(const std::string gold, TextField(entry, "gold", where));
  PACE_ASSIGN_OR_RETURN(const std::string answer, TextField(entry, "pred", where));
  const Value expected = FieldOf(entry, "expected");
  if (!expected.is_bool() && !expected.is_integer()) {
    return InvalidArgument(where, ": expected: must be 0 or 1");
  }
  const bool wanted = expected.is_bool() ? expected.boolean() : expected.integer() != 0;
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

Status CheckEquivalence(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) {
    PACE_ASSIGN_OR_RETURN(const ValueList cases, ReadCaseList(path));
    for (size_t i = 0; i < cases.size(); ++i) {
      PACE_RETURN_IF_ERROR(CheckCase(cases[i], Concat(path, ": cases[", i, "]"), tally));
    }
  }
  return Status::Ok();
}

}  // namespace pace
