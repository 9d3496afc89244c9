// Fuzzes what servers answer. Whatever it is, reading it ends with a value that is consistent in
// itself, or with one line.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "engines/dialect.h"

namespace pace {
namespace {

void CheckOneLine(const std::string& text) {
  PACE_CHECK(text.find('\n') == std::string::npos, "an error must be one line: ", text);
}

void FuzzGenerate(const Dialect& dialect, std::string_view body) {
  GenerateCall call;
  call.id = "r";
  call.tokens = {1, 2, 3, 7, 8};
  call.max_tokens = 4;
  call.first_scored = 3;
  const Result<GenerateAnswer> answer = dialect.ReadGenerate(call, body);
  if (!answer.ok()) return CheckOneLine(answer.status().message());
  PACE_CHECK(answer->tokens.size() == answer->logprobs.size(), "log-probabilities");
  for (const float logprob : answer->logprobs) PACE_CHECK(logprob < 0.01F, "log-probability");
  for (const TokenId id : answer->tokens) PACE_CHECK(id >= 0, "token ", id);
  PACE_CHECK(answer->scores.size() <= body.size(), "scores");
}

// Which call of the join, and the status of its answer, come from `choice`.
void FuzzJoin(const Dialect& dialect, size_t choice, std::string_view body) {
  constexpr std::array<int64_t, 4> kStatuses = {200, 404, 400, 500};
  static const std::array<size_t, 2> num_calls = {VllmDialect().Join().size(),
                                                  SglangDialect().Join().size()};
  const size_t index = choice % num_calls.at(&dialect == &VllmDialect() ? 0 : 1);
  ServerFacts facts;
  const ServerAnswer answer{kStatuses.at(choice / 8 % kStatuses.size()), std::string(body)};
  CheckOneLine(dialect.ReadJoin(index, answer, facts).message());
}

void FuzzLabel(const Dialect& dialect, std::string_view body) {
  const Result<std::string> label = dialect.ReadLabel(body);
  if (!label.ok()) CheckOneLine(label.status().message());
  CheckOneLine(dialect.ReadError(body));
  const Result<bool> ready = dialect.ReadFetch(body);
  if (!ready.ok()) CheckOneLine(ready.status().message());
  const FirstTokens first = dialect.ReadMetrics(body);
  PACE_CHECK(first.count >= 0 && first.time.count() >= 0, "first tokens");
}

// The first byte says who reads the rest, and as what.
void Fuzz(uint8_t choice, std::string_view body) {
  const Dialect& dialect = choice % 2 == 0 ? VllmDialect() : SglangDialect();
  switch (choice / 2 % 4) {
    case 0:
      return FuzzLabel(dialect, body);
    case 1:
      return FuzzGenerate(dialect, body);
    default:
      return FuzzJoin(dialect, choice / 4, body);
  }
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  pace::Fuzz(data[0], body);
  return 0;
}
