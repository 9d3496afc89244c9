#include "conformance/case_file.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/file.h"
#include "text/python_text.h"

namespace pace {
namespace {

constexpr size_t kMaxCaseBytes = size_t{1} << 30;

// The part of a long text around where it begins to differ, as one line.
std::string Around(const std::string& text, size_t at) {
  constexpr size_t kBefore = 20;
  constexpr size_t kLength = 80;
  const size_t begin = at > kBefore ? at - kBefore : 0;
  JsonStyle style;
  style.ensure_ascii = true;
  const Result<std::string> shown = ToPythonJson(Value(text.substr(begin, kLength)), style);
  return Concat(begin > 0 ? "..." : "", shown.ok() ? *shown : "?",
                begin + kLength < text.size() ? "..." : "");
}

}  // namespace

Result<Value> ReadCaseFile(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxCaseBytes));
  Result<Value> file = ParsePythonJson(text);
  if (!file.ok()) return file.status().At(path);
  if (!file->is_dict() && !file->is_list()) {
    return InvalidArgument(path, ": must be an object with cases");
  }
  return file;
}

Status CheckCases(const std::string& path, const Value& file, Tally& tally,
                  const CaseCheck& check) {
  PACE_ASSIGN_OR_RETURN(const ValueList cases,
                        file.is_list() ? file.list() : ListField(file, "cases", path));
  for (size_t i = 0; i < cases.size(); ++i) {
    const Value name = FieldOf(cases[i], "name");
    const std::string where =
        Concat(path, ": cases[", i, "]", name.is_text() ? " " + name.text() : "");
    if (!cases[i].is_dict()) return InvalidArgument(where, ": must be an object");
    PACE_RETURN_IF_ERROR(check(cases[i], where, tally));
  }
  return Status::Ok();
}

Status CheckCases(const std::vector<std::string>& paths, Tally& tally, const CaseCheck& check) {
  for (const std::string& path : paths) {
    PACE_ASSIGN_OR_RETURN(const Value file, ReadCaseFile(path));
    PACE_RETURN_IF_ERROR(CheckCases(path, file, tally, check));
  }
  return Status::Ok();
}

Result<std::vector<TokenId>> IdsField(const Value& object, std::string_view name,
                                      const std::string& where) {
  PACE_ASSIGN_OR_RETURN(const ValueList list, ListField(object, name, where));
  std::vector<TokenId> ids;
  for (const Value& id : list) {
    if (!id.is_integer()) return InvalidArgument(where, ": ", name, ": must hold integers");
    constexpr int64_t kMax = std::numeric_limits<TokenId>::max();
    const bool fits = id.integer() >= 0 && id.integer() <= kMax;
    ids.push_back(static_cast<TokenId>(fits ? id.integer() : kMax));
  }
  return ids;
}

std::string JoinIds(const std::vector<TokenId>& ids) {
  std::string out;
  for (const TokenId id : ids) out += Concat(out.empty() ? "" : " ", id);
  return out;
}

Value FieldOf(const Value& object, std::string_view name) {
  const Value* found = object.is_dict() ? object.dict().Find(name) : nullptr;
  return found == nullptr ? Value() : *found;
}

Result<std::string> TextField(const Value& object, std::string_view name,
                              const std::string& where) {
  const Value field = FieldOf(object, name);
  if (!field.is_text()) return InvalidArgument(where, ": ", name, ": must be a text");
  return field.text();
}

Result<ValueList> ListField(const Value& object, std::string_view name, const std::string& where) {
  const Value field = FieldOf(object, name);
  if (!field.is_list()) return InvalidArgument(where, ": ", name, ": must be a list");
  return field.list();
}

std::string TokenizerFolder(const KindArguments& arguments, const std::string& path) {
  if (!arguments.tokenizer.empty()) return arguments.tokenizer;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string Difference(const std::string& where, std::string_view what, const std::string& ours,
                       const std::string& expected) {
  const auto end = std::mismatch(ours.begin(), ours.end(), expected.begin(), expected.end());
  const auto at = static_cast<size_t>(end.first - ours.begin());
  return Concat(where, ": ", what, ": byte ", at + 1, ": ours ", Around(ours, at), ", expected ",
                Around(expected, at));
}

void CompareText(Tally& tally, const std::string& where, std::string_view what,
                 const std::string& ours, const std::string& expected) {
  ours == expected ? tally.Pass() : tally.Fail(Difference(where, what, ours, expected));
}

}  // namespace pace
