// A problem's text inside the prompt that the settings want around it.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_TASK_PROMPT_TEMPLATE_H_
#define PACE_TASK_PROMPT_TEMPLATE_H_

#include <string>
#include <string_view>

namespace pace {

inline constexpr std::string_view kProblemField = "{problem}";

// `form` with the problem's text for every "{problem}"; other braces stand for
// themselves, and so does what the problem holds.
std::string FillPromptTemplate(std::string_view form, std::string_view problem);

}  // namespace pace

#endif  // PACE_TASK_PROMPT_TEMPLATE_H_
