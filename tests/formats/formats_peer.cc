// Does for the Python tests what they cannot do themselves:
//
//   formats_peer accept FILE...      a line per safetensors file: ok, or why not
//   formats_peer rewrite IN OUT      reads safetensors, writes it again
//   formats_peer shard IN DIR BYTES  reads safetensors, writes shards
//   formats_peer dequantize IN OUT   the floats of a GGUF file, one after another;
//                                    a line per tensor: name, type, values
//   formats_peer import IN OUT       llama2.c (.bin) or GGUF to safetensors, in F32
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "formats/gguf_import.h"
#include "formats/llama2c.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"

namespace pace {
namespace {

Status Accept(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
    std::cout << (file.ok() ? "ok" : file.status().message()) << "\n";
  }
  return Status::Ok();
}

Status Rewrite(const std::string& from, const std::string& to) {
  const Result<SafetensorsFile> file = SafetensorsFile::Open(from);
  if (!file.ok()) return file.status();
  return WriteSafetensors(to, file->tensors(), file->metadata());
}

Status Shard(const std::string& from, const std::string& folder, const std::string& bytes) {
  const Result<SafetensorsFile> file = SafetensorsFile::Open(from);
  if (!file.ok()) return file.status();
  return WriteShardedSafetensors(folder, file->tensors(), file->metadata(), std::stoll(bytes));
}

Status DequantizeAll(const std::string& from, const std::string& to) {
  const Result<GgufFile> file = GgufFile::Open(from);
  if (!file.ok()) return file.status();
  std::ofstream out(to, std::ios::binary);
  for (const GgufTensor& tensor : file->tensors()) {
    const Result<std::vector<float>> values = Dequantize(tensor);
    if (!values.ok()) return values.status();
    const std::span<const std::byte> bytes = std::as_bytes(std::span(*values));
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    std::cout << tensor.name << " " << tensor.type.name << " " << values->size() << "\n";
  }
  return out.flush() ? Status::Ok() : Unavailable(to, ": cannot be written");
}

Result<std::vector<FloatTensor>> ReadFloats(const std::string& path) {
  if (path.ends_with(".bin")) {
    Result<Llama2cModel> model = ReadLlama2cModel(path);
    if (!model.ok()) return model.status();
    return std::move(model->tensors);
  }
  const Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.status();
  const Result<GgufImporter> importer = GgufImporter::Create(*file);
  if (!importer.ok()) return importer.status();
  std::vector<FloatTensor> tensors;
  for (const GgufTensor& tensor : file->tensors()) {
    Result<FloatTensor> imported = importer->Import(tensor);
    if (!imported.ok()) return imported.status();
    tensors.push_back(std::move(*imported));
  }
  return tensors;
}

Status Import(const std::string& from, const std::string& to) {
  const Result<std::vector<FloatTensor>> tensors = ReadFloats(from);
  if (!tensors.ok()) return tensors.status();
  TensorViews views;
  for (const FloatTensor& tensor : *tensors) {
    views[tensor.name] = {Dtype::kF32, tensor.shape, std::as_bytes(std::span(tensor.values))};
  }
  return WriteSafetensors(to, views, kPyTorchMetadata);
}

Status Run(const std::string& command, const std::vector<std::string>& rest) {
  if (command == "accept") return Accept(rest);
  if (command == "rewrite" && rest.size() == 2) return Rewrite(rest[0], rest[1]);
  if (command == "shard" && rest.size() == 3) return Shard(rest[0], rest[1], rest[2]);
  if (command == "dequantize" && rest.size() == 2) return DequantizeAll(rest[0], rest[1]);
  if (command == "import" && rest.size() == 2) return Import(rest[0], rest[1]);
  return InvalidArgument(command, ": must be accept, rewrite, shard, dequantize or import");
}

}  // namespace
}  // namespace pace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return EXIT_FAILURE;
  const pace::Status status =
      pace::Run(arguments[0], std::vector<std::string>(arguments.begin() + 1, arguments.end()));
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
