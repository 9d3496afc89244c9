// Reading the case files that every kind but `admission` and `safetensors` has: a JSON
// object with a list of cases, or a bare list of them.
#ifndef PACE_CONFORMANCE_CASE_FILE_H_
#define PACE_CONFORMANCE_CASE_FILE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/kinds.h"
#include "core/status.h"
#include "core/token_id.h"
#include "text/value.h"

namespace pace {

// The file's object. A missing file, or one that is not JSON, is an error.
Result<Value> ReadCaseFile(const std::string& path);

// Compares one case. `where` is "FILE: cases[3] NAME", without NAME where the case has none.
using CaseCheck = std::function<Status(const Value& entry, const std::string& where, Tally& tally)>;
// Every case of every file.
Status CheckCases(const std::vector<std::string>& paths, Tally& tally, const CaseCheck& check);
Status CheckCases(const std::string& path, const Value& file, Tally& tally, const CaseCheck& check);

// A field of a case; the list `name` of a file.
// An error names the file and the field.
Result<std::string> TextField(const Value& object, std::string_view name, const std::string& where);
Result<ValueList> ListField(const Value& object, std::string_view name, const std::string& where);
// The ids of a list. Ids too large for a token stay outside every vocabulary.
Result<std::vector<TokenId>> IdsField(const Value& object, std::string_view name,
                                      const std::string& where);
// "1 2 3", for failures.
std::string JoinIds(const std::vector<TokenId>& ids);
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
