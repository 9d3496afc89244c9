// Reading a safetensors file, as strictly as the Python package (0.8) does.
//
//   Result<SafetensorsFile> file = SafetensorsFile::Open(path);
//   if (!file.ok()) return file.status();
//   const TensorView* weight = file->Find("model.norm.weight");  // null = none
//
// The file is mapped: opening reads the header alone, and views point into the
// mapping. What the package refuses is refused with one line that names file,
// tensor, field and rule. What it accepts is accepted: spaces around the
// header, unknown fields, tensors in any order, scalars, empty tensors, data
// that is not aligned, a name listed twice (the last one counts). Two oddities
// that it accepts are refused: dimensions of an empty tensor whose product
// exceeds 2^63 before it meets the zero, and unknown fields nested deeper than
// 62 lists. One that it refuses is accepted: the integer -0.
// Thread-safety: immutable after Open.
#ifndef PACE_FORMATS_SAFETENSORS_H_
#define PACE_FORMATS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/status.h"
#include "formats/dtype.h"
#include "formats/tensor_view.h"

namespace pace {

// What a file says about itself: texts by name.
using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsContents {
  // Absent is not the same as empty.
  std::optional<SafetensorsMetadata> metadata;
  TensorViews tensors;
};

// Reads a whole file that is in memory; the views point into `file`. Errors do
// not name the file: the caller knows it.
Result<SafetensorsContents> ParseSafetensors(std::span<const std::byte> file);

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::optional<SafetensorsMetadata>& metadata() const { return contents_.metadata; }
  const TensorViews& tensors() const { return contents_.tensors; }
  const TensorView* Find(std::string_view name) const;

 private:
  SafetensorsFile(MappedFile file, SafetensorsContents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {}

  MappedFile file_;
  SafetensorsContents contents_;  // points into file_
};

// Larger headers are refused by the package, so we neither read nor write them.
inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // into the data, which follows the header
  int64_t end = 0;
};

// The JSON header, before it is held against the data.
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

#endif  // PACE_FORMATS_SAFETENSORS_H_
