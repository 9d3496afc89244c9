// Fuzzes the reader of GGUF: every tensor it accepts is read to its end.
#include <cstdint>
#include <string>

#include "core/check.h"
#include "formats/gguf.h"
#include "formats/gguf_import.h"

namespace pace {
namespace {

void CheckOneLine(const Status& status) {
  PACE_CHECK(status.message().find('\n') == std::string::npos,
             "an error must be one line: ", status.message());
}

void Fuzz(std::span<const std::byte> file) {
  const Result<GgufContents> contents = ParseGguf(file);
  if (!contents.ok()) return CheckOneLine(contents.status());
  for (const GgufTensor& tensor : contents->tensors) {
    const Result<std::vector<float>> values = Dequantize(tensor);
    PACE_CHECK(values.ok() == CanDequantize(tensor.type), tensor.type.name);
    if (values.ok()) {
      PACE_CHECK(values->size() == static_cast<size_t>(tensor.num_elements), "a size is wrong");
    } else {
      CheckOneLine(values.status());
    }
    if (const auto name = HuggingFaceName(tensor.name); !name.ok()) CheckOneLine(name.status());
  }
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz(std::as_bytes(std::span(data, size)));
  return 0;
}
