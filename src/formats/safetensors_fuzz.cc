// Fuzzes the reader of safetensors. Views must lie within the file, and what is
// accepted must come back the same from what the writer makes of it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/check.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"

namespace pace {
namespace {

bool Same(const TensorView& left, const TensorView& right) {
  return left.dtype == right.dtype && left.shape == right.shape &&
         std::equal(left.bytes.begin(), left.bytes.end(), right.bytes.begin(), right.bytes.end());
}

// A folder that goes with the process.
class Scratch {
 public:
  Scratch() : folder_((std::filesystem::temp_directory_path() / "safetensors-XXXXXX").string()) {
    PACE_CHECK(::mkdtemp(folder_.data()) != nullptr, folder_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path() const { return folder_ + "/again.safetensors"; }

 private:
  std::string folder_;
};

void CheckRoundTrip(const SafetensorsContents& contents) {
  static const Scratch scratch;
  const Status written = WriteSafetensors(scratch.path(), contents.tensors, contents.metadata);
  PACE_CHECK(written.ok(), written.message());
  const Result<SafetensorsFile> again = SafetensorsFile::Open(scratch.path());
  PACE_CHECK(again.ok(), again.status().message());
  PACE_CHECK(again->metadata() == contents.metadata, "metadata changed on the way");
  PACE_CHECK(again->tensors().size() == contents.tensors.size(), "tensors changed on the way");
  for (const auto& [name, tensor] : contents.tensors) {
    const TensorView* const found = again->Find(name);
    PACE_CHECK(found != nullptr && Same(*found, tensor), "a tensor changed on the way");
  }
}

void Fuzz(std::span<const std::byte> file) {
  const Result<SafetensorsContents> contents = ParseSafetensors(file);
  if (!contents.ok()) {
    const std::string& message = contents.status().message();
    PACE_CHECK(message.find('\n') == std::string::npos, "an error must be one line: ", message);
    return;
  }
  size_t num_bytes = 0;
  unsigned sum = 0;
  for (const auto& [name, tensor] : contents->tensors) {
    num_bytes += tensor.bytes.size();
    for (const std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);
  }
  PACE_CHECK(num_bytes < file.size(), "more data than file; sum ", sum);
  // Files are slow beside parsing: write one accepted input in 64.
  if (sum % 64 == 0) CheckRoundTrip(*contents);
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz(std::as_bytes(std::span(data, size)));
  return 0;
}
