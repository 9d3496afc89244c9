// Reading the case files of the verifiers: a bare JSON list of cases, or an
// object with such a list in "cases".
#ifndef PACE_CONFORMANCE_CASE_LIST_H_
#define PACE_CONFORMANCE_CASE_LIST_H_

#include <string>

#include "conformance/case_file.h"
#include "core/file.h"
#include "core/status.h"
#include "text/python_text.h"

namespace pace {

inline Result<ValueList> ReadCaseList(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  const Result<Value> file = ParsePythonJson(text);
  if (!file.ok()) return file.status().At(path);
  return file->is_list() ? file->list() : ListField(*file, "cases", path);
}

}  // namespace pace

#endif  // PACE_CONFORMANCE_CASE_LIST_H_
