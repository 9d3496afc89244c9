// The value types of GGUF metadata and the tensor types of ggml.
// Thread-safety: values and pure functions.
#ifndef PACE_FORMATS_GGUF_TYPES_H_
#define PACE_FORMATS_GGUF_TYPES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pace {

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

}  // namespace pace

#endif  // PACE_FORMATS_GGUF_TYPES_H_
