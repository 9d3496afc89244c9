#include "convert/export_llama2c.h"

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "core/atomic_file.h"
#include "formats/llama2c.h"
#include "formats/rope_rows.h"
#include "model/weight_set.h"

namespace pace {
namespace {

Status CheckConfig(const ModelConfig& config) {
  const auto refuse = [](std::string_view field, const std::string& value, std::string_view rule) {
    return InvalidArgument(field, " = ", value, ": llama2.c ", rule);
  };
  if (config.architecture != Architecture::kLlama) {
    return refuse("model_type", std::string(ArchitectureName(config.architecture)),
                  "knows llama alone");
  }
  if (config.num_heads * config.head_dim != config.hidden_size) {
    return refuse("head_dim", Concat(config.head_dim), "splits the hidden size into heads");
  }
  if (config.rope.theta != kLlama2cRopeBase || config.rope.type != RopeType::kDefault) {
    return refuse("rope_theta", Concat(config.rope.theta), "has 10000, not stretched");
  }
  if (config.norm_epsilon != kLlama2cNormEpsilon) {
    return refuse("rms_norm_eps", Concat(config.norm_epsilon), "has 1e-5");
  }
  if (config.qkv_bias || config.output_bias) {
    return refuse("attention_bias", "true", "has no biases");
  }
  if (config.mlp_bias) return refuse("mlp_bias", "true", "has no biases");
  return Status::Ok();
}

template <typename T>
std::string_view BytesOf(const T& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(typename T::value_type)};
}

// cos, then sin, of every position and pair. llama2.c reads past them.
std::vector<float> RotationTables(const ModelConfig& config) {
  const std::vector<float> frequencies = RopeFrequencies(config);
  std::vector<float> tables;
  for (const bool is_sine : {false, true}) {
    for (int64_t position = 0; position < config.max_positions; ++position) {
      for (const float frequency : frequencies) {
        const float angle = static_cast<float>(position) * frequency;
        tables.push_back(is_sine ? std::sin(angle) : std::cos(angle));
      }
    }
  }
  return tables;
}

class Llama2cWriter {
 public:
  Llama2cWriter(const ModelSource& source, AtomicFile& file) : source_(source), file_(file) {
    int64_t index = 0;
    for (const Parameter& parameter : ParametersOf(source.config)) index_[parameter.name] = index++;
  }

  Status Write() {
    const ModelConfig& config = source_.config;
    const auto small = [](int64_t value) { return static_cast<int32_t>(value); };
    const std::array<int32_t, 7> header = {
        small(config.hidden_size),  small(config.intermediate_size),
        small(config.num_layers),   small(config.num_heads),
        small(config.num_kv_heads), small(config.tied ? config.vocab_size : -config.vocab_size),
        small(config.max_positions)};
    PACE_RETURN_IF_ERROR(file_.Append(BytesOf(header)));
    PACE_RETURN_IF_ERROR(Put("model.embed_tokens.weight", 0));
    PACE_RETURN_IF_ERROR(PutLayers("input_layernorm", 0));
    PACE_RETURN_IF_ERROR(PutLayers("self_attn.q_proj", config.num_heads));
    PACE_RETURN_IF_ERROR(PutLayers("self_attn.k_proj", config.num_kv_heads));
    for (const std::string_view kind :
         {"self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj",
          "mlp.down_proj", "mlp.up_proj"}) {
      PACE_RETURN_IF_ERROR(PutLayers(kind, 0));
    }
    PACE_RETURN_IF_ERROR(Put("model.norm.weight", 0));
    PACE_RETURN_IF_ERROR(file_.Append(BytesOf(RotationTables(config))));
    return config.tied ? Status::Ok() : Put("lm_head.weight", 0);
  }

 private:
  Status PutLayers(std::string_view kind, int64_t num_rope_heads) {
    for (int64_t layer = 0; layer < source_.config.num_layers; ++layer) {
      PACE_RETURN_IF_ERROR(
          Put(Concat("model.layers.", layer, ".", kind, ".weight"), num_rope_heads));
    }
    return Status::Ok();
  }

  Status Put(const std::string& name, int64_t num_rope_heads) {
    PACE_ASSIGN_OR_RETURN(const FloatTensor tensor, source_.tensor(index_.at(name)));
    if (num_rope_heads == 0) return file_.Append(BytesOf(tensor.values));
    return file_.Append(
        BytesOf(HalvesToInterleaved(tensor.values, num_rope_heads, source_.config.head_dim)));
  }

  const ModelSource& source_;
  AtomicFile& file_;
  std::map<std::string, int64_t> index_;
};

}  // namespace

Status ExportLlama2c(const std::string& path, const ModelSource& source) {
  PACE_RETURN_IF_ERROR(CheckConfig(source.config));
  PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  PACE_RETURN_IF_ERROR(Llama2cWriter(source, file).Write());
  return file.Commit();
}

}  // namespace pace
