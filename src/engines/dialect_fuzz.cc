// Fuzzes what servers answer. Whatever it is, reading it ends with a value that is consistent in
// itself, or with one line.
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

void Fuzz(const Dialect& dialect, std::string_view body) {
  GenerateCall call;
  call.id = "r";
  call.tokens = {1, 2, 3, 7, 8};
  call.max_tokens = 4;
  call.first_scored = 3;
  const Result<GenerateAnswer> answer = dialect.ReadGenerate(call, body);
  if (answer.ok()) {
    PACE_CHECK(answer->tokens.size() == answer->logprobs.size(), "log-probabilities");
    for (const float logprob : answer->logprobs) PACE_CHECK(logprob < 0.01F, "log-probability");
    for (const TokenId id : answer->tokens) PACE_CHECK(id >= 0, "token ", id);
    PACE_CHECK(answer->scores.size() <= body.size(), "scores");
  } else {
    CheckOneLine(answer.status().message());
  }
  ServerFacts facts;
  for (size_t i = 0; i < dialect.Join().size(); ++i) {
    for (const int64_t status : {200, 400, 404, 500}) {
      CheckOneLine(dialect.ReadJoin(i, {status, std::string(body)}, facts).message());
    }
  }
  const Result<std::string> label = dialect.ReadLabel(body);
  if (!label.ok()) CheckOneLine(label.status().message());
  CheckOneLine(dialect.ReadError(body));
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  pace::Fuzz(data[0] % 2 == 0 ? pace::VllmDialect() : pace::SglangDialect(), body);
  return 0;
}
