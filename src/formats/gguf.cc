#include "formats/gguf.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "core/printable.h"
#include "formats/byte_reader.h"
#include "formats/dtype.h"

namespace pace {
namespace {

constexpr auto kGgmlTypes = std::to_array<GgmlType>({
    {kGgmlF32, "F32", 1, 4},     {kGgmlF16, "F16", 1, 2},
    {kGgmlQ4_0, "Q4_0", 32, 18}, {kGgmlQ4_1, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},         {7, "Q5_1", 32, 24},
    {kGgmlQ8_0, "Q8_0", 32, 34}, {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},      {12, "Q4_K", 256, 144},
    {13, "Q5_K", 256, 176},      {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292},      {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},     {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},      {20, "IQ4_NL", 32, 18},
    {21, "IQ3_S", 256, 110},     {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136},    {24, "I8", 1, 1},
    {25, "I16", 1, 2},           {26, "I32", 1, 4},
    {27, "I64", 1, 8},           {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},      {kGgmlBF16, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54},      {35, "TQ2_0", 256, 66},
    {39, "MXFP4", 32, 17},       {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
});

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDimensions = 4;  // ggml's
constexpr int kMaxArrayDepth = 8;

// The least a key with its value, a tensor's description, or a string can take.
constexpr uint64_t kLeastPairBytes = 8 + 4 + 1;
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;

Status Truncated(const ByteReader& reader, std::string_view what) {
  return DataLoss("byte ", reader.at(), ": ", what, ": the file ends before it does");
}

// The least number of bytes that a value takes; 0 for no such type.
uint64_t LeastBytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kText:
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kArray:
      return 12;
  }
  return 0;
}

bool ReadText(ByteReader& reader, std::string& out) {
  uint64_t length = 0;
  return reader.Read(length) && reader.ReadText(length, out);
}

template <typename Stored>
bool ReadInteger(ByteReader& reader, int64_t& out) {
  Stored value = 0;
  const bool read = reader.Read(value);
  out = static_cast<int64_t>(value);
  return read;
}

// Every integer type but u64; booleans are 0 or 1, which the caller checks.
bool ReadAnyInteger(ByteReader& reader, GgufType type, int64_t& out) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kBool:
      return ReadInteger<uint8_t>(reader, out);
    case GgufType::kI8:
      return ReadInteger<int8_t>(reader, out);
    case GgufType::kU16:
      return ReadInteger<uint16_t>(reader, out);
    case GgufType::kI16:
      return ReadInteger<int16_t>(reader, out);
    case GgufType::kU32:
      return ReadInteger<uint32_t>(reader, out);
    case GgufType::kI32:
      return ReadInteger<int32_t>(reader, out);
    default:
      return ReadInteger<int64_t>(reader, out);
  }
}

bool ReadReal(ByteReader& reader, GgufType type, double& out) {
  if (type == GgufType::kF64) return reader.Read(out);
  float value = 0;
  const bool read = reader.Read(value);
  out = static_cast<double>(value);
  return read;
}

Status ReadArray(ByteReader& reader, int depth, GgufArray& out);

// Appends one item to the vector that holds its type.
Status ReadItem(ByteReader& reader, int depth, GgufArray& out) {
  switch (out.item_type) {
    case GgufType::kArray:
      return ReadArray(reader, depth + 1, out.arrays.emplace_back());
    case GgufType::kText:
      if (!ReadText(reader, out.texts.emplace_back())) return Truncated(reader, "a string");
      return Status::Ok();
    case GgufType::kF32:
    case GgufType::kF64:
      if (!ReadReal(reader, out.item_type, out.reals.emplace_back())) {
        return Truncated(reader, "a real");
      }
      return Status::Ok();
    case GgufType::kU64:
      if (!reader.Read(out.unsigneds.emplace_back())) return Truncated(reader, "an integer");
      return Status::Ok();
    default:
      break;
  }
  int64_t& value = out.integers.emplace_back();
  if (!ReadAnyInteger(reader, out.item_type, value)) return Truncated(reader, "an integer");
  if (out.item_type == GgufType::kBool && value > 1) {
    return InvalidArgument("boolean = ", value, ": must be 0 or 1");
  }
  return Status::Ok();
}

Status ReadArray(ByteReader& reader, int depth, GgufArray& out) {
  if (depth > kMaxArrayDepth) {
    return InvalidArgument("arrays must nest at most ", kMaxArrayDepth, " deep");
  }
  uint32_t type = 0;
  uint64_t count = 0;
  if (!reader.Read(type) || !reader.Read(count)) return Truncated(reader, "an array");
  out.item_type = static_cast<GgufType>(type);
  const uint64_t least = LeastBytes(out.item_type);
  if (least == 0) return InvalidArgument("array of type ", type, ": no such type of value");
  if (count > reader.num_left() / least) {
    return DataLoss("array of ", count, " items: only ", reader.num_left(), " bytes are left");
  }
  for (uint64_t i = 0; i < count; ++i) PACE_RETURN_IF_ERROR(ReadItem(reader, depth, out));
  return Status::Ok();
}

Status ReadValue(ByteReader& reader, GgufValue& out) {
  uint32_t type = 0;
  if (!reader.Read(type)) return Truncated(reader, "the type of a value");
  GgufArray one;
  one.item_type = static_cast<GgufType>(type);
  if (LeastBytes(one.item_type) == 0) return InvalidArgument("type ", type, ": no such type");
  // A value is read as an array of one, and taken out of it.
  PACE_RETURN_IF_ERROR(ReadItem(reader, 0, one));
  if (!one.arrays.empty()) {
    out = std::move(one.arrays[0]);
  } else if (!one.texts.empty()) {
    out = std::move(one.texts[0]);
  } else if (!one.reals.empty()) {
    out = one.reals[0];
  } else if (!one.unsigneds.empty()) {
    out = one.unsigneds[0];
  } else if (one.item_type == GgufType::kBool) {
    out = one.integers[0] != 0;
  } else {
    out = one.integers[0];
  }
  return Status::Ok();
}

Status ReadMetadata(ByteReader& reader, uint64_t count, GgufMetadata& out) {
  if (count > reader.num_left() / kLeastPairBytes) {
    return DataLoss("metadata count = ", count, ": only ", reader.num_left(), " bytes are left");
  }
  for (uint64_t i = 0; i < count; ++i) {
    std::string key;
    if (!ReadText(reader, key)) return Truncated(reader, Concat("metadata key ", i));
    const std::string where = Concat("metadata ", Printable(key));
    const auto [entry, is_new] = out.try_emplace(std::move(key));
    if (!is_new) return InvalidArgument(where, ": must stand once");
    PACE_RETURN_IF_ERROR(ReadValue(reader, entry->second).At(where));
  }
  return Status::Ok();
}

// A tensor as described, and where its data begins behind the header.
struct Description {
  GgufTensor tensor;
  uint64_t offset = 0;
  uint64_t size = 0;
};

Status ReadShape(ByteReader& reader, GgufTensor& tensor) {
  uint32_t num_dimensions = 0;
  if (!reader.Read(num_dimensions)) return Truncated(reader, "the number of dimensions");
  if (num_dimensions > kMaxDimensions) {
    return InvalidArgument("number of dimensions = ", num_dimensions,
                           ": must be <= ", kMaxDimensions);
  }
  tensor.num_elements = 1;
  for (uint32_t i = 0; i < num_dimensions; ++i) {
    int64_t dimension = 0;
    if (!reader.Read(dimension)) return Truncated(reader, "a dimension");
    tensor.shape.insert(tensor.shape.begin(), dimension);
    if (dimension < 0 ||
        __builtin_mul_overflow(tensor.num_elements, dimension, &tensor.num_elements)) {
      return InvalidArgument("shape = ", ShapeText(tensor.shape),
                             ": dimensions must be >= 0 and their product fit in 63 bits");
    }
  }
  return Status::Ok();
}

Status ReadDescription(ByteReader& reader, Description& out) {
  GgufTensor& tensor = out.tensor;
  PACE_RETURN_IF_ERROR(ReadShape(reader, tensor));
  uint32_t type_id = 0;
  if (!reader.Read(type_id) || !reader.Read(out.offset)) return Truncated(reader, "type, offset");
  const GgmlType* const type = FindGgmlType(type_id);
  if (type == nullptr) return InvalidArgument("type = ", type_id, ": no such type of tensor");
  tensor.type = *type;
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % type->elements != 0) {
    return InvalidArgument("shape = ", ShapeText(tensor.shape), ": rows of ", type->name,
                           " must be multiples of ", type->elements);
  }
  int64_t size = 0;
  if (__builtin_mul_overflow(tensor.num_elements / type->elements, type->bytes, &size)) {
    return InvalidArgument("shape = ", ShapeText(tensor.shape), ": the size must fit in 63 bits");
  }
  out.size = static_cast<uint64_t>(size);
  return Status::Ok();
}

Result<std::vector<Description>> ReadDescriptions(ByteReader& reader, uint64_t count) {
  if (count > reader.num_left() / kLeastTensorBytes) {
    return DataLoss("tensor count = ", count, ": only ", reader.num_left(), " bytes are left");
  }
  std::vector<Description> found;
  std::set<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    Description& next = found.emplace_back();
    if (!ReadText(reader, next.tensor.name)) return Truncated(reader, Concat("tensor name ", i));
    const std::string where = Concat("tensor ", Printable(next.tensor.name));
    if (!names.insert(next.tensor.name).second) {
      return InvalidArgument(where, ": must stand once");
    }
    PACE_RETURN_IF_ERROR(ReadDescription(reader, next).At(where));
  }
  return found;
}

Result<uint64_t> Alignment(const GgufMetadata& metadata) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return kDefaultAlignment;
  const int64_t* const value = std::get_if<int64_t>(&found->second);
  if (value == nullptr || *value <= 0 || *value > std::numeric_limits<uint32_t>::max() ||
      !std::has_single_bit(static_cast<uint64_t>(*value))) {
    return InvalidArgument("metadata general.alignment: must be a power of two in 32 bits");
  }
  return static_cast<uint64_t>(*value);
}

// REQUIRES: value is no larger than a file.
uint64_t RoundUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Gives each tensor its bytes: one behind the other, each begin aligned.
Status PlaceTensors(std::span<const std::byte> file, uint64_t header_bytes, uint64_t alignment,
                    std::vector<Description>& found) {
  const uint64_t begin = std::min<uint64_t>(RoundUp(header_bytes, alignment), file.size());
  const std::span<const std::byte> data = file.subspan(begin);
  uint64_t expected = 0;
  for (Description& next : found) {
    const std::string where = Concat("tensor ", Printable(next.tensor.name));
    if (next.offset != expected) {
      return DataLoss(where, ": offset = ", next.offset, ": must be ", expected,
                      " (tensors follow each other, aligned to ", alignment, ")");
    }
    if (next.offset > data.size() || next.size > data.size() - next.offset) {
      return DataLoss(where, ": offset = ", next.offset, ": needs ", next.size,
                      " bytes, but the data has ", data.size(), " (is the file truncated?)");
    }
    next.tensor.bytes = data.subspan(next.offset, next.size);
    expected = RoundUp(next.offset + next.size, alignment);
  }
  return Status::Ok();
}

}  // namespace

// An array fills one of its vectors.
size_t GgufArray::size() const {
  return integers.size() + unsigneds.size() + reals.size() + texts.size() + arrays.size();
}

const GgmlType* FindGgmlType(uint32_t id) {
  for (const GgmlType& type : kGgmlTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

Result<GgufContents> ParseGguf(std::span<const std::byte> file) {
  ByteReader reader(file);
  uint32_t magic = 0;
  GgufContents contents;
  uint64_t num_tensors = 0;
  uint64_t num_pairs = 0;
  if (!reader.Read(magic) || magic != kMagic) {
    return InvalidArgument("must begin with GGUF (is it a GGUF file?)");
  }
  if (!reader.Read(contents.version)) return Truncated(reader, "the version");
  if (contents.version != 2 && contents.version != 3) {
    const bool swapped = contents.version != 0 && (contents.version & 0xFFFFu) == 0;
    return InvalidArgument("version = ", contents.version, ": must be 2 or 3",
                           swapped ? " (is the file big-endian?)" : "");
  }
  if (!reader.Read(num_tensors) || !reader.Read(num_pairs)) return Truncated(reader, "the counts");
  PACE_RETURN_IF_ERROR(ReadMetadata(reader, num_pairs, contents.metadata));
  PACE_ASSIGN_OR_RETURN(std::vector<Description> found, ReadDescriptions(reader, num_tensors));
  PACE_ASSIGN_OR_RETURN(const uint64_t alignment, Alignment(contents.metadata));
  PACE_RETURN_IF_ERROR(PlaceTensors(file, reader.at(), alignment, found));
  contents.alignment = static_cast<int64_t>(alignment);
  for (Description& next : found) contents.tensors.push_back(std::move(next.tensor));
  return contents;
}

Result<GgufFile> GgufFile::Open(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  Result<GgufContents> contents = ParseGguf(file.bytes());
  if (!contents.ok()) return contents.status().At(path);
  return GgufFile(std::move(file), std::move(*contents));
}

const GgufTensor* GgufFile::Find(std::string_view name) const {
  for (const GgufTensor& tensor : contents_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

namespace {

Result<const GgufValue*> FindValue(const GgufFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    return NotFound(file.path(), ": metadata ", Printable(key), ": is missing");
  }
  return &found->second;
}

}  // namespace

Result<int64_t> GgufFile::Integer(std::string_view key) const {
  PACE_ASSIGN_OR_RETURN(const GgufValue* value, FindValue(*this, key));
  if (const auto* const integer = std::get_if<int64_t>(value)) return *integer;
  const auto* const large = std::get_if<uint64_t>(value);
  if (large != nullptr && std::in_range<int64_t>(*large)) return static_cast<int64_t>(*large);
  return InvalidArgument(path(), ": metadata ", Printable(key), ": must be an integer in 63 bits");
}

Result<double> GgufFile::Real(std::string_view key) const {
  PACE_ASSIGN_OR_RETURN(const GgufValue* value, FindValue(*this, key));
  if (const auto* const real = std::get_if<double>(value)) return *real;
  return InvalidArgument(path(), ": metadata ", Printable(key), ": must be a real number");
}

Result<std::string> GgufFile::Text(std::string_view key) const {
  PACE_ASSIGN_OR_RETURN(const GgufValue* value, FindValue(*this, key));
  if (const auto* const text = std::get_if<std::string>(value)) return *text;
  return InvalidArgument(path(), ": metadata ", Printable(key), ": must be a string");
}

}  // namespace pace
