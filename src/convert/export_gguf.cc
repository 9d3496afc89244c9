#include "convert/export_gguf.h"

#include <string_view>
#include <utility>

#include "convert/import_gguf.h"
#include "formats/gguf_import.h"
#include "formats/rope_rows.h"
#include "model/weight_set.h"

namespace pace {
namespace {

// llama.cpp's numbers for "mostly of this type".
uint32_t FileType(uint32_t type) {
  if (type == kGgmlF16) return 1;
  if (type == kGgmlQ8_0) return 7;
  if (type == kGgmlBF16) return 32;
  return 0;
}

uint32_t TypeOf(const std::vector<int64_t>& shape, uint32_t type) {
  if (shape.size() < 2) return kGgmlF32;
  if (type == kGgmlQ8_0 && shape.back() % FindGgmlType(type)->elements != 0) return kGgmlF16;
  return type;
}

Status PutConfig(const ModelConfig& config, const GgufExportOptions& options, GgufWriter& writer) {
  if (config.architecture == Architecture::kQwen3Moe) {
    return InvalidArgument("model_type = ", ArchitectureName(config.architecture),
                           ": GGUF is written for llama, qwen2 and qwen3");
  }
  const std::string architecture(ArchitectureName(config.architecture));
  const auto count = [&](std::string_view key, int64_t value) {
    writer.PutU32(Concat(architecture, ".", key), static_cast<uint32_t>(value));
  };
  writer.PutText("general.architecture", architecture);
  writer.PutText("general.type", "model");
  writer.PutText("general.name", options.name);
  writer.PutU32("general.file_type", FileType(options.type));
  if (options.type == kGgmlQ8_0) writer.PutU32("general.quantization_version", 2);
  count("block_count", config.num_layers);
  count("context_length", config.max_positions);
  count("embedding_length", config.hidden_size);
  count("feed_forward_length", config.intermediate_size);
  count("attention.head_count", config.num_heads);
  count("attention.head_count_kv", config.num_kv_heads);
  count("attention.key_length", config.head_dim);
  count("attention.value_length", config.head_dim);
  count("rope.dimension_count", config.head_dim);
  count("vocab_size", config.vocab_size);
  writer.PutF32(architecture + ".attention.layer_norm_rms_epsilon",
                static_cast<float>(config.norm_epsilon));
  writer.PutF32(architecture + ".rope.freq_base", static_cast<float>(config.rope.theta));
  if (config.rope.type == RopeType::kLinear) {
    writer.PutText(architecture + ".rope.scaling.type", "linear");
    writer.PutF32(architecture + ".rope.scaling.factor", static_cast<float>(config.rope.factor));
  } else if (config.rope.type == RopeType::kLlama3) {
    count("rope.scaling.original_context_length", config.rope.original_max_positions);
  }
  return Status::Ok();
}

// What Llama 3's rule divides each frequency by.
std::vector<float> RopeDivisors(const ModelConfig& config) {
  ModelConfig plain = config;
  plain.rope.type = RopeType::kDefault;
  std::vector<float> divisors = RopeFrequencies(plain);
  const std::vector<float> stretched = RopeFrequencies(config);
  for (size_t i = 0; i < divisors.size(); ++i) divisors[i] /= stretched[i];
  return divisors;
}

// As the file has them: architecture llama interleaves the rows of q and k.
std::vector<float> InFileOrder(FloatTensor tensor, const ModelConfig& config) {
  const bool is_q = tensor.name.find(".q_proj.") != std::string::npos;
  const bool is_k = tensor.name.find(".k_proj.") != std::string::npos;
  if (config.architecture != Architecture::kLlama || !(is_q || is_k)) {
    return std::move(tensor.values);
  }
  return HalvesToInterleaved(tensor.values, is_q ? config.num_heads : config.num_kv_heads,
                             config.head_dim);
}

}  // namespace

Status ExportGguf(const std::string& path, const ModelSource& source,
                  const GgufExportOptions& options) {
  GgufWriter writer;
  PACE_RETURN_IF_ERROR(PutConfig(source.config, options, writer));
  if (options.tokenizer) {
    PACE_RETURN_IF_ERROR(PutGgufTokenizer(source.texts, source.config, writer));
  }
  // Tensors come in the order of ParametersOf.
  for (const Parameter& parameter : ParametersOf(source.config)) {
    PACE_ASSIGN_OR_RETURN(const std::string name, GgufName(parameter.name));
    writer.AddTensor(name, TypeOf(parameter.shape, options.type), parameter.shape);
  }
  if (source.config.rope.type == RopeType::kLlama3) {
    writer.AddTensor(kRopeFrequencies, kGgmlF32, {source.config.head_dim / 2});
  }
  return writer.Write(path, [&](size_t index) -> Result<std::vector<float>> {
    const auto at = static_cast<int64_t>(index);
    if (at >= source.num_tensors) return RopeDivisors(source.config);
    PACE_ASSIGN_OR_RETURN(FloatTensor tensor, source.tensor(at));
    options.progress(at + 1, source.num_tensors);
    return InFileOrder(std::move(tensor), source.config);
  });
}

}  // namespace pace
