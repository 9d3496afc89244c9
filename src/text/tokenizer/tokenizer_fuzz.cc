// Fuzzes the reader of tokenizer.json; what is accepted encodes and decodes.
#include <cstdint>
#include <string>

#include "core/check.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

void CheckOneLine(const Status& status) {
  PACE_CHECK(status.message().find('\n') == std::string::npos,
             "an error must be one line: ", status.message());
}

void Fuzz(const std::string& json) {
  const Result<Tokenizer> tokenizer = Tokenizer::Parse(json);
  if (!tokenizer.ok()) return CheckOneLine(tokenizer.status());
  const Result<std::vector<TokenId>> ids = tokenizer->Encode(json, true);
  if (!ids.ok()) return CheckOneLine(ids.status());
  StreamDecoder stream(*tokenizer, false);
  std::string streamed;
  for (const TokenId id : *ids) streamed += stream.Feed(id).value_or("");
  streamed += stream.Finish();
  PACE_CHECK(streamed == tokenizer->Decode(*ids), "a stream must give the whole decode");
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
