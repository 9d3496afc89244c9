// Reading GGUF, versions 2 and 3, little-endian: metadata, tensors, floats.
//
//   Result<GgufFile> file = GgufFile::Open(path);
//   Result<std::string> arch = file->Text("general.architecture");
//   Result<std::vector<float>> values = Dequantize(*file->Find("output.weight"));
//
// Every count and offset is held against the bytes that are there before it is
// used, so a hostile file costs no more memory than a small multiple of its
// size. Rules are llama.cpp's: keys and tensor names once, alignment a power of
// two, tensors one behind the other. Version 1 and big-endian files are refused.
// Thread-safety: immutable after Open.
#ifndef PACE_FORMATS_GGUF_H_
#define PACE_FORMATS_GGUF_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/status.h"
#include "formats/gguf_types.h"

namespace pace {

struct GgufTensor {
  std::string name;
  GgmlType type;
  // Slowest dimension first, as everywhere in this project; the file has them
  // the other way round.
  std::vector<int64_t> shape;
  int64_t num_elements = 0;
  std::span<const std::byte> bytes;
};

using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

struct GgufContents {
  uint32_t version = 0;
  int64_t alignment = 0;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in the order of the file
};

// Reads a whole file that is in memory; the tensors point into `file`. Errors
// do not name the file: the caller knows it.
Result<GgufContents> ParseGguf(std::span<const std::byte> file);

// F32, F16, BF16, Q8_0, Q4_0 and Q4_1; any other type is an error that names it.
// The values are bit for bit those of the `gguf` package.
Result<std::vector<float>> Dequantize(const GgufTensor& tensor);
bool CanDequantize(const GgmlType& type);

class GgufFile {
 public:
  static Result<GgufFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  uint32_t version() const { return contents_.version; }
  const GgufMetadata& metadata() const { return contents_.metadata; }
  const std::vector<GgufTensor>& tensors() const { return contents_.tensors; }
  const GgufTensor* Find(std::string_view name) const;

  // Metadata by key and type. Errors: no such key, or a value of another type.
  // Integer takes every width whose value fits.
  Result<int64_t> Integer(std::string_view key) const;
  Result<double> Real(std::string_view key) const;
  Result<std::string> Text(std::string_view key) const;

 private:
  GgufFile(MappedFile file, GgufContents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {}

  MappedFile file_;
  GgufContents contents_;  // points into file_
};

}  // namespace pace

#endif  // PACE_FORMATS_GGUF_H_
