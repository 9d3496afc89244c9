// `truncation`: tool responses cut to a number of characters.
#include "conformance/case_file.h"
#include "text/truncation.h"

namespace pace {

Status CheckTruncation(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) {
    PACE_ASSIGN_OR_RETURN(const Value file, ReadCaseFile(path));
    PACE_ASSIGN_OR_RETURN(const ValueList cases, ListField(file, "cases", path));
    for (size_t i = 0; i < cases.size(); ++i) {
      const Value& entry = cases[i];
      const std::string where = Concat(path, ": cases[", i, "]");
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
    }
  }
  return Status::Ok();
}

}  // namespace pace
