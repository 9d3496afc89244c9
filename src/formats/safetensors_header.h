// The JSON header of a safetensors file, before it is held against the data.
// Thread-safety: values and pure functions.
#ifndef PACE_FORMATS_SAFETENSORS_HEADER_H_
#define PACE_FORMATS_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "formats/dtype.h"
#include "formats/safetensors.h"

namespace pace {

// Larger headers are refused by the package, so we neither read nor write them.
inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // into the data, which follows the header
  int64_t end = 0;
};

struct SafetensorsHeader {
  std::optional<SafetensorsMetadata> metadata;
  std::map<std::string, SafetensorsEntry, std::less<>> entries;
};

// Syntax and types alone: a name that is listed twice keeps its last entry.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text);

// The tensors must follow each other from 0 to data_bytes without gap or
// overlap, each as long as its dtype and shape say.
Status CheckSafetensorsLayout(const SafetensorsHeader& header, int64_t data_bytes);

}  // namespace pace

#endif  // PACE_FORMATS_SAFETENSORS_HEADER_H_
