// Reference files of safetensors: DIR/expected.json says of each file what the
// Python package reads from it, or that it refuses it. Several DIRs may be given.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "conformance/kinds.h"
#include "formats/float_encoding.h"
#include "formats/safetensors.h"

namespace pace {
namespace {

using Json = nlohmann::json;

// torch's names, which the references use.
const std::map<std::string, Dtype>& TorchDtypes() {
  static const std::map<std::string, Dtype> names = {
      {"bool", Dtype::kBool},
      {"uint8", Dtype::kU8},
      {"int8", Dtype::kI8},
      {"int16", Dtype::kI16},
      {"uint16", Dtype::kU16},
      {"int32", Dtype::kI32},
      {"uint32", Dtype::kU32},
      {"int64", Dtype::kI64},
      {"uint64", Dtype::kU64},
      {"float16", Dtype::kF16},
      {"bfloat16", Dtype::kBF16},
      {"float32", Dtype::kF32},
      {"float64", Dtype::kF64},
      {"float8_e5m2", Dtype::kF8E5M2},
      {"float8_e4m3fn", Dtype::kF8E4M3},
      {"complex64", Dtype::kC64},
  };
  return names;
}

template <typename T>
T Load(std::span<const std::byte> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

std::optional<double> LoadReal(const TensorView& tensor, size_t index) {
  switch (tensor.dtype) {
    case Dtype::kF16:
      return F16ToFloat(Load<uint16_t>(tensor.bytes, index));
    case Dtype::kBF16:
      return BF16ToFloat(Load<uint16_t>(tensor.bytes, index));
    case Dtype::kF32:
      return Load<float>(tensor.bytes, index);
    case Dtype::kF64:
      return Load<double>(tensor.bytes, index);
    default:
      return std::nullopt;
  }
}

// Integers of every width as their bits in 64, so that u64 fits as well.
std::optional<uint64_t> LoadInteger(const TensorView& tensor, size_t index) {
  const auto widen = [](auto value) { return static_cast<uint64_t>(int64_t{value}); };
  switch (tensor.dtype) {
    case Dtype::kBool:
    case Dtype::kU8:
      return Load<uint8_t>(tensor.bytes, index);
    case Dtype::kI8:
      return widen(Load<int8_t>(tensor.bytes, index));
    case Dtype::kI16:
      return widen(Load<int16_t>(tensor.bytes, index));
    case Dtype::kU16:
      return Load<uint16_t>(tensor.bytes, index);
    case Dtype::kI32:
      return widen(Load<int32_t>(tensor.bytes, index));
    case Dtype::kU32:
      return Load<uint32_t>(tensor.bytes, index);
    case Dtype::kI64:
    case Dtype::kU64:
      return Load<uint64_t>(tensor.bytes, index);
    default:
      return std::nullopt;
  }
}

// Equal as the reference writes values: decimal texts for reals, in which every
// NaN is "nan" and the sign of zero counts; numbers or booleans for integers.
bool SameValue(const TensorView& tensor, size_t index, const Json& expected) {
  if (const std::optional<double> real = LoadReal(tensor, index)) {
    if (!expected.is_string() && !expected.is_number()) return false;
    const double wanted = expected.is_string()
                              ? std::strtod(expected.get_ref<const std::string&>().c_str(), nullptr)
                              : expected.get<double>();
    if (std::isnan(wanted)) return std::isnan(*real);
    return *real == wanted && std::signbit(*real) == std::signbit(wanted);
  }
  const std::optional<uint64_t> integer = LoadInteger(tensor, index);
  if (!integer.has_value()) return false;
  if (expected.is_boolean()) return *integer == (expected.get<bool>() ? 1u : 0u);
  if (expected.is_number_unsigned()) return *integer == expected.get<uint64_t>();
  return expected.is_number_integer() && *integer == static_cast<uint64_t>(expected.get<int64_t>());
}

// What differs, or nothing.
std::string TensorDifference(const TensorView& tensor, const Json& expected) {
  const std::string dtype = expected.at("dtype");
  const auto named = TorchDtypes().find(dtype);
  const bool same_dtype = named != TorchDtypes().end() ? named->second == tensor.dtype
                                                       : DtypeName(tensor.dtype) == dtype;
  if (!same_dtype) return Concat("dtype is ", DtypeName(tensor.dtype), ", expected ", dtype);
  if (expected.at("shape").get<std::vector<int64_t>>() != tensor.shape) {
    return Concat("shape is ", ShapeText(tensor.shape), ", expected ", expected.at("shape").dump());
  }
  const Json& values = expected.at("values");
  const size_t num_values =
      tensor.bytes.size() * 8 / static_cast<size_t>(BitsPerElement(tensor.dtype));
  if (values.size() != num_values) {
    return Concat("holds ", num_values, " values, expected ", values.size());
  }
  for (size_t i = 0; i < num_values; ++i) {
    if (!SameValue(tensor, i, values[i])) {
      return Concat("value ", i, " is not ", values[i].dump());
    }
  }
  return "";
}

std::string TensorDifference(const SafetensorsFile& file, const Json& expected) {
  const Json metadata = file.metadata().has_value() ? Json(*file.metadata()) : Json();
  if (metadata != expected.value("metadata", Json())) {
    return Concat("metadata is ", metadata.dump(), ", expected ",
                  expected.value("metadata", Json()).dump());
  }
  const Json& tensors = expected.at("tensors");
  if (tensors.size() != file.tensors().size()) {
    return Concat("holds ", file.tensors().size(), " tensors, expected ", tensors.size());
  }
  for (const auto& [name, tensor] : tensors.items()) {
    const TensorView* const found = file.Find(name);
    if (found == nullptr) return Concat(name, ": is not there");
    if (const std::string difference = TensorDifference(*found, tensor); !difference.empty()) {
      return Concat(name, ": ", difference);
    }
  }
  return "";
}

// A reason is one line that says more than the path.
std::string TensorDifference(const Status& refusal, const std::string& path) {
  const std::string& reason = refusal.message();
  if (reason.find('\n') != std::string::npos) return "is refused in more than one line";
  if (!reason.starts_with(path) || reason.size() <= path.size() + 2) {
    return Concat("is refused without file and reason: ", reason);
  }
  return "";
}

std::string CaseDifference(const std::string& path, const Json& expected) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "is not there";
  const bool accepted = expected.value("ok", !expected.contains("error"));
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (!accepted) {
    return file.ok() ? "is accepted, must be refused" : TensorDifference(file.status(), path);
  }
  return file.ok() ? TensorDifference(*file, expected)
                   : Concat("is refused: ", file.status().message());
}

Status CheckFolder(const std::string& given, Tally& tally) {
  // Either the folder or its expected.json may be named.
  std::filesystem::path folder(given);
  if (folder.extension() == ".json") folder = folder.parent_path();
  const std::string index = (folder / "expected.json").string();
  std::ifstream stream(index);
  if (!stream) return NotFound(index, ": cannot be opened");
  const Json expected = Json::parse(stream);
  for (const Json& entry : expected.at("files")) {
    const std::string name = entry.at("file");
    const std::string difference = CaseDifference((folder / name).string(), entry);
    if (difference.empty()) {
      tally.Pass();
    } else {
      tally.Fail(Concat(index, ": ", name, ": ", difference));
    }
  }
  return Status::Ok();
}

}  // namespace

Status CheckSafetensors(const KindArguments& arguments, Tally& tally) {
  if (arguments.paths.empty()) {
    return InvalidArgument("safetensors: must name a folder that holds expected.json");
  }
  for (const std::string& folder : arguments.paths) {
    try {
      PACE_RETURN_IF_ERROR(CheckFolder(folder, tally));
    } catch (const Json::exception& error) {
      return InvalidArgument(folder, ": expected.json is not of this kind: ", error.what());
    }
  }
  return Status::Ok();
}

}  // namespace pace
