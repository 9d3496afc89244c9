// Reading the case files that every kind but `admission` and `safetensors` has:
// one JSON object with a list of cases.
#ifndef PACE_CONFORMANCE_CASE_FILE_H_
#define PACE_CONFORMANCE_CASE_FILE_H_

#include <string>
#include <string_view>

#include "conformance/kinds.h"
#include "core/status.h"
#include "text/value.h"

namespace pace {

// The file's object. A file that is not there or not JSON is an error.
Result<Value> ReadCaseFile(const std::string& path);

// A field of a case; the list `name` of a file.
// An error names the file and the field.
Result<std::string> TextField(const Value& object, std::string_view name, const std::string& where);
Result<ValueList> ListField(const Value& object, std::string_view name, const std::string& where);
// The field, or undefined.
Value FieldOf(const Value& object, std::string_view name);

// --tokenizer, or the folder of the file.
std::string TokenizerFolder(const KindArguments& arguments, const std::string& path);

// "FILE: NAME: what: ours ..., expected ...", cut to a readable length.
std::string Difference(const std::string& where, std::string_view what, const std::string& ours,
                       const std::string& expected);

// Counts one comparison of texts.
void CompareText(Tally& tally, const std::string& where, std::string_view what,
                 const std::string& ours, const std::string& expected);

}  // namespace pace

#endif  // PACE_CONFORMANCE_CASE_FILE_H_
