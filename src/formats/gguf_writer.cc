#include "formats/gguf_writer.h"

#include <cstring>
#include <utility>

#include "core/atomic_file.h"
#include "core/check.h"
#include "formats/float_encoding.h"

namespace pace {
namespace {

constexpr uint32_t kVersion = 3;
// Without a key that says otherwise, tensors begin at multiples of this.
constexpr uint64_t kAlignment = 32;
constexpr uint64_t kMaxDimensions = 4;

template <typename T>
void AppendRaw(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void AppendText(std::string& out, std::string_view text) {
  AppendRaw(out, uint64_t{text.size()});
  out += text;
}

uint64_t Padding(uint64_t size) {
  return (kAlignment - size % kAlignment) % kAlignment;
}

std::vector<std::byte> Encode(uint32_t type, std::span<const float> values) {
  if (type == kGgmlQ8_0) return EncodeQ8_0(values);
  if (type == kGgmlF16) return EncodeFloats(values, Dtype::kF16);
  if (type == kGgmlBF16) return EncodeFloats(values, Dtype::kBF16);
  return EncodeFloats(values, Dtype::kF32);
}

}  // namespace

void GgufWriter::PutKey(std::string_view key, GgufType type) {
  AppendText(metadata_, key);
  AppendRaw(metadata_, type);
  ++num_pairs_;
}

void GgufWriter::PutText(std::string_view key, std::string_view text) {
  PutKey(key, GgufType::kText);
  AppendText(metadata_, text);
}

void GgufWriter::PutU32(std::string_view key, uint32_t value) {
  PutKey(key, GgufType::kU32);
  AppendRaw(metadata_, value);
}

void GgufWriter::PutF32(std::string_view key, float value) {
  PutKey(key, GgufType::kF32);
  AppendRaw(metadata_, value);
}

void GgufWriter::PutBool(std::string_view key, bool value) {
  PutKey(key, GgufType::kBool);
  AppendRaw(metadata_, static_cast<uint8_t>(value ? 1 : 0));
}

void GgufWriter::PutTexts(std::string_view key, std::span<const std::string> texts) {
  PutKey(key, GgufType::kArray);
  AppendRaw(metadata_, GgufType::kText);
  AppendRaw(metadata_, uint64_t{texts.size()});
  for (const std::string& text : texts) AppendText(metadata_, text);
}

void GgufWriter::PutI32s(std::string_view key, std::span<const int32_t> values) {
  PutKey(key, GgufType::kArray);
  AppendRaw(metadata_, GgufType::kI32);
  AppendRaw(metadata_, uint64_t{values.size()});
  for (const int32_t value : values) AppendRaw(metadata_, value);
}

void GgufWriter::PutF32s(std::string_view key, std::span<const float> values) {
  PutKey(key, GgufType::kArray);
  AppendRaw(metadata_, GgufType::kF32);
  AppendRaw(metadata_, uint64_t{values.size()});
  for (const float value : values) AppendRaw(metadata_, value);
}

void GgufWriter::AddTensor(std::string_view name, uint32_t type, std::vector<int64_t> shape) {
  const GgmlType* const stored = FindGgmlType(type);
  const bool writable =
      type == kGgmlF32 || type == kGgmlF16 || type == kGgmlBF16 || type == kGgmlQ8_0;
  PACE_CHECK(stored != nullptr && writable, name, ": type ", type);
  PACE_CHECK(!shape.empty() && shape.size() <= kMaxDimensions, name, ": ", shape.size(),
             " dimensions");
  PACE_CHECK(shape.back() % stored->elements == 0, name, ": rows of ", shape.back());
  int64_t num_values = 1;
  for (const int64_t dimension : shape) {
    PACE_CHECK(dimension > 0, name, ": dimension ", dimension);
    num_values *= dimension;
  }
  tensors_.push_back(
      {.name = std::string(name),
       .type = type,
       .shape = std::move(shape),
       .num_values = num_values,
       .num_bytes = static_cast<uint64_t>(num_values / stored->elements * stored->bytes)});
}

// All that comes before the data, the padding included.
std::string GgufWriter::Header() const {
  std::string out = "GGUF";
  AppendRaw(out, kVersion);
  AppendRaw(out, uint64_t{tensors_.size()});
  AppendRaw(out, num_pairs_);
  out += metadata_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    AppendText(out, tensor.name);
    AppendRaw(out, static_cast<uint32_t>(tensor.shape.size()));
    // The file has the fastest dimension first.
    for (auto dimension = tensor.shape.rbegin(); dimension != tensor.shape.rend(); ++dimension) {
      AppendRaw(out, static_cast<uint64_t>(*dimension));
    }
    AppendRaw(out, tensor.type);
    AppendRaw(out, offset);
    offset += tensor.num_bytes + Padding(tensor.num_bytes);
  }
  out.append(Padding(out.size()), '\0');
  return out;
}

Status GgufWriter::Write(const std::string& path,
                         const std::function<Result<std::vector<float>>(size_t)>& values_of) const {
  PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  PACE_RETURN_IF_ERROR(file.Append(Header()));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    PACE_ASSIGN_OR_RETURN(const std::vector<float> values, values_of(i));
    PACE_CHECK(static_cast<int64_t>(values.size()) == tensors_[i].num_values, tensors_[i].name,
               ": ", values.size(), " values");
    PACE_RETURN_IF_ERROR(file.Append(Encode(tensors_[i].type, values)));
    PACE_RETURN_IF_ERROR(file.Append(std::string(Padding(tensors_[i].num_bytes), '\0')));
  }
  return file.Commit();
}

}  // namespace pace
