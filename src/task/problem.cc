#include "task/problem.h"

namespace pace {

std::string FillPromptTemplate(std::string_view form, std::string_view problem) {
  std::string out;
  for (size_t found = 0; (found = form.find(kProblemField)) != std::string_view::npos;) {
    out += form.substr(0, found);
    out += problem;
    form.remove_prefix(found + kProblemField.size());
  }
  return out += form;
}

}  // namespace pace
