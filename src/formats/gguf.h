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
#include <variant>
#include <vector>

#include "core/file.h"
#include "core/status.h"

namespace pace {

// The value types of metadata.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kText = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

struct GgufArray;

// Integers of every width are int64_t but for u64, which is uint64_t; f32 and
// f64 are double.
using GgufValue = std::variant<bool, int64_t, uint64_t, double, std::string, GgufArray>;

// The items, all of one type; what is not of it is empty.
struct GgufArray {
  GgufType item_type = GgufType::kU8;
  std::vector<int64_t> integers;    // all integers but u64; booleans as 0 and 1
  std::vector<uint64_t> unsigneds;  // u64
  std::vector<double> reals;        // f32, f64
  std::vector<std::string> texts;   // strings, any bytes
  std::vector<GgufArray> arrays;    // arrays in the array

  size_t size() const;
  friend bool operator==(const GgufArray&, const GgufArray&) = default;
};

// How ggml stores a row: blocks of `elements` values in `bytes` bytes.
struct GgmlType {
  uint32_t id = 0;
  std::string_view name;
  int64_t elements = 0;
  int64_t bytes = 0;
};

// Null for an id that no file uses.
const GgmlType* FindGgmlType(uint32_t id);

// The ids we turn into floats.
inline constexpr uint32_t kGgmlF32 = 0;
inline constexpr uint32_t kGgmlF16 = 1;
inline constexpr uint32_t kGgmlQ4_0 = 2;
inline constexpr uint32_t kGgmlQ4_1 = 3;
inline constexpr uint32_t kGgmlQ8_0 = 8;
inline constexpr uint32_t kGgmlBF16 = 30;

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
