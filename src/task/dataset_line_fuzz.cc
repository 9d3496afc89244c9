// Fuzzes the reader of datasets: lines, and the file around them.
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "task/dataset.h"
#include "task/dataset_line.h"

namespace {

void CheckLine(std::string_view text) {
  const auto line = pace::ParseDatasetLine(text);
  if (!line.ok()) {
    PACE_CHECK(line.status().message().find('\n') == std::string::npos, "an error is one line");
    return;
  }
  PACE_CHECK(!line->answer.empty(), "an answer is given");
  if (const auto* messages = std::get_if<std::vector<pace::ChatMessage>>(&line->prompt)) {
    PACE_CHECK(!messages->empty(), "a conversation has messages");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckLine(text);
  const auto dataset = pace::Dataset::Parse(text, "fuzz.jsonl", {.prompt_template = "<{problem}>"});
  if (!dataset.ok()) {
    PACE_CHECK(dataset.status().message().find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  PACE_CHECK(dataset->size() >= 1, "a dataset has rows");
  for (int64_t row = 0; row < dataset->size(); ++row) {
    PACE_CHECK(!dataset->Row(row).answer.empty(), "row ", row);
  }
  return 0;
}
