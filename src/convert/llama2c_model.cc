#include "convert/llama2c_model.h"

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "convert/tokenizer_spec.h"
#include "core/atomic_file.h"
#include "core/printable.h"
#include "formats/llama2c.h"
#include "formats/rope_rows.h"
#include "model/weight_set.h"

namespace pace {
namespace {

constexpr TokenId kUnk = 0;
constexpr TokenId kBos = 1;
constexpr TokenId kEos = 2;
constexpr size_t kFirstByte = 3;
constexpr size_t kNumBytes = 256;

std::string ByteName(size_t byte) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  return Concat("<0x", kHex[byte >> 4], kHex[byte & 15], ">");
}

Status CheckBytes(const Llama2cVocabulary& vocabulary) {
  if (vocabulary.tokens.size() < kFirstByte + kNumBytes) {
    return InvalidArgument(vocabulary.tokens.size(), " tokens: must be at least ",
                           kFirstByte + kNumBytes, " (three special ones and one per byte)");
  }
  for (size_t byte = 0; byte < kNumBytes; ++byte) {
    const std::string& name = vocabulary.tokens[kFirstByte + byte].bytes;
    if (name != ByteName(byte)) {
      return InvalidArgument("token ", kFirstByte + byte, " = '", Printable(name), "': must be ",
                             ByteName(byte));
    }
  }
  return Status::Ok();
}

ModelConfig ConfigOf(const Llama2cConfig& config) {
  ModelConfig out;
  out.architecture = Architecture::kLlama;
  out.vocab_size = config.vocab_size;
  out.hidden_size = config.hidden_size;
  out.intermediate_size = config.intermediate_size;
  out.num_layers = config.num_layers;
  out.num_heads = config.num_heads;
  out.num_kv_heads = config.num_kv_heads;
  out.head_dim = config.head_dim();
  out.max_positions = config.max_positions;
  out.norm_epsilon = kLlama2cNormEpsilon;
  out.rope.theta = kLlama2cRopeBase;
  out.tied = config.tied;
  if (config.vocab_size > kEos) {
    out.bos = kBos;
    out.eos = {kEos, kBos};
  }
  return out;
}

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

Result<TokenizerSpec> Llama2cTokenizer(const Llama2cVocabulary& vocabulary) {
  PACE_RETURN_IF_ERROR(CheckBytes(vocabulary));
  TokenizerSpec spec;
  std::vector<float> scores;
  for (const Llama2cToken& token : vocabulary.tokens) {
    spec.tokens.push_back(token.bytes);
    scores.push_back(token.score);
  }
  // The file has line ends around them.
  spec.tokens[kBos] = "<s>";
  spec.tokens[kEos] = "</s>";
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.tokens[id].empty()) spec.tokens[id] = Concat("[EMPTY_", id, "]");
    if (std::isnan(scores[id])) return InvalidArgument("token ", id, ": score must be a number");
    if (!seen.insert(spec.tokens[id]).second) {
      return InvalidArgument("token ", id, ": '", Printable(spec.tokens[id]), "' occurs twice");
    }
  }
  for (const TokenId id : {kUnk, kBos, kEos}) {
    spec.added.push_back({.id = id,
                          .content = spec.tokens[static_cast<size_t>(id)],
                          .normalized = false,
                          .special = true});
  }
  spec.unk = kUnk;
  spec.bos = kBos;
  spec.eos = kEos;
  spec.add_bos = true;
  PutSentencePiece(SpaceMark::kSpace, /*add_space=*/true, spec);
  spec.merges = MergesFromScores(spec.tokens, scores);
  return spec;
}

Result<ModelSource> OpenLlama2c(const std::string& path, const std::string& tokenizer) {
  PACE_ASSIGN_OR_RETURN(Llama2cModel model, ReadLlama2cModel(path));
  ModelSource source{.config = ConfigOf(model.config),
                     .texts = {},
                     .num_tensors = static_cast<int64_t>(model.tensors.size()),
                     .tensor = {}};
  PACE_RETURN_IF_ERROR(CheckModelConfig(source.config).At(path));
  if (!tokenizer.empty()) {
    PACE_ASSIGN_OR_RETURN(const Llama2cVocabulary vocabulary, ReadLlama2cVocabulary(tokenizer));
    if (static_cast<int64_t>(vocabulary.tokens.size()) != model.config.vocab_size) {
      return InvalidArgument(tokenizer, ": ", vocabulary.tokens.size(), " tokens: the model has ",
                             model.config.vocab_size);
    }
    const Result<TokenizerSpec> spec = Llama2cTokenizer(vocabulary);
    if (!spec.ok()) return spec.status().At(tokenizer);
    Result<std::vector<FolderText>> texts = TokenizerFiles(*spec);
    if (!texts.ok()) return texts.status().At(tokenizer);
    source.texts = std::move(texts).value();
  }
  const auto tensors = std::make_shared<std::vector<FloatTensor>>(std::move(model.tensors));
  source.tensor = [tensors](int64_t index) -> Result<FloatTensor> {
    return std::move((*tensors)[static_cast<size_t>(index)]);
  };
  return source;
}

Status ExportLlama2c(const std::string& path, const ModelSource& source) {
  PACE_RETURN_IF_ERROR(CheckConfig(source.config));
  PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  PACE_RETURN_IF_ERROR(Llama2cWriter(source, file).Write());
  return file.Commit();
}

}  // namespace pace
