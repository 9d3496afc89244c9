// Problem: one question with the answer that a response must reach.
#ifndef PACE_TASK_PROBLEM_H_
#define PACE_TASK_PROBLEM_H_

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reward/verifier.h"

namespace pace {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", as the data says it
  std::string content;

  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

// Text, which a model with a chat template receives as one user message and any
// other model as it stands; or a whole conversation, which needs a template.
using Prompt = std::variant<std::string, std::vector<ChatMessage>>;

struct Problem {
  std::string id = {};
  Prompt prompt = {};
  std::string answer = {};
  VerifierMode verifier = VerifierMode::kDapoInteger;
  // Labels of verl's schema; empty elsewhere.
  std::string data_source = {};
  std::string ability = {};
  std::string extra_info = {};  // JSON

  friend bool operator==(const Problem&, const Problem&) = default;
};

// A problem's text inside the prompt that the settings want around it.
inline constexpr std::string_view kProblemField = "{problem}";

// `form` with the problem's text for every "{problem}"; other braces stand for
// themselves, and so does what the problem holds.
std::string FillPromptTemplate(std::string_view form, std::string_view problem);

}  // namespace pace

#endif  // PACE_TASK_PROBLEM_H_
