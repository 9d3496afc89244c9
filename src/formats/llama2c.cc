#include "formats/llama2c.h"

#include <array>
#include <utility>

#include "core/file.h"
#include "formats/byte_reader.h"
#include "formats/rope_rows.h"

namespace pace {
namespace {

// "ak42", with which later versions begin.
constexpr int32_t kVersionedMagic = 0x616b3432;
// Above any such model; products of three such numbers fit in 63 bits.
constexpr int64_t kMaxDimension = int64_t{1} << 20;

// What the weights of one kind are called, and the shape of one layer's.
struct Kind {
  std::string name;
  std::vector<int64_t> shape;
  // The heads whose rows are reordered; 0 = none are.
  int64_t num_rope_heads = 0;
};

int64_t NumValues(const Kind& kind) {
  int64_t product = 1;
  for (const int64_t dimension : kind.shape) product *= dimension;
  return product;
}

std::vector<Kind> LayerKinds(const Llama2cConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t kv = config.num_kv_heads * config.head_dim();
  return {
      {"input_layernorm.weight", {hidden}},
      {"self_attn.q_proj.weight", {hidden, hidden}, config.num_heads},
      {"self_attn.k_proj.weight", {kv, hidden}, config.num_kv_heads},
      {"self_attn.v_proj.weight", {kv, hidden}},
      {"self_attn.o_proj.weight", {hidden, hidden}},
      {"post_attention_layernorm.weight", {hidden}},
      {"mlp.gate_proj.weight", {config.intermediate_size, hidden}},
      {"mlp.down_proj.weight", {hidden, config.intermediate_size}},
      {"mlp.up_proj.weight", {config.intermediate_size, hidden}},
  };
}

Result<Llama2cConfig> ReadConfig(ByteReader& reader) {
  std::array<int32_t, 7> fields{};
  if (!reader.Read(fields)) return DataLoss("must begin with seven integers of 4 bytes");
  if (fields[0] == kVersionedMagic) {
    return InvalidArgument("begins with ak42: must be a version 0 file, without magic");
  }
  constexpr std::array<std::string_view, 7> kNames = {
      "dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"};
  std::array<int64_t, 7> values{};
  for (size_t i = 0; i < fields.size(); ++i) {
    values[i] = fields[i];
    if (kNames[i] == "vocab_size" && values[i] < 0) values[i] = -values[i];
    if (values[i] < 1 || values[i] > kMaxDimension) {
      return InvalidArgument(kNames[i], " = ", fields[i], ": must be in 1 .. ", kMaxDimension);
    }
  }
  const Llama2cConfig config{values[0], values[1], values[2], values[3],
                             values[4], values[5], values[6], fields[5] > 0};
  if (config.hidden_size % (2 * config.num_heads) != 0) {
    return InvalidArgument("n_heads = ", config.num_heads,
                           ": must split dim = ", config.hidden_size, " into heads of even size");
  }
  if (config.num_heads % config.num_kv_heads != 0) {
    return InvalidArgument("n_kv_heads = ", config.num_kv_heads,
                           ": must divide n_heads = ", config.num_heads);
  }
  return config;
}

// The values behind the header. It cannot overflow: 2^20 layers of matrices of
// 2^40 values stay below 2^63.
int64_t ExpectedValues(const Llama2cConfig& config) {
  int64_t per_layer = 0;
  for (const Kind& kind : LayerKinds(config)) per_layer += NumValues(kind);
  const int64_t embedding = config.vocab_size * config.hidden_size;
  const int64_t rotation_tables = config.max_positions * config.head_dim();
  return embedding * (config.tied ? 1 : 2) + config.num_layers * per_layer + config.hidden_size +
         rotation_tables;
}

// REQUIRES: the file is as long as ExpectedValues says.
class WeightReader {
 public:
  explicit WeightReader(std::span<const std::byte> weights) : weights_(weights) {}

  void Skip(int64_t num_values) {
    weights_ = weights_.subspan(static_cast<size_t>(num_values) * sizeof(float));
  }

  FloatTensor Take(const Kind& kind, std::string name) {
    const auto num_values = static_cast<size_t>(NumValues(kind));
    FloatTensor tensor{std::move(name), kind.shape, std::vector<float>(num_values)};
    std::memcpy(tensor.values.data(), weights_.data(), num_values * sizeof(float));
    Skip(NumValues(kind));
    if (kind.num_rope_heads > 0) {
      const int64_t head_dim = kind.shape[0] / kind.num_rope_heads;
      tensor.values = InterleavedToHalves(tensor.values, kind.num_rope_heads, head_dim);
    }
    return tensor;
  }

 private:
  std::span<const std::byte> weights_;
};

}  // namespace

Result<Llama2cModel> ParseLlama2cModel(std::span<const std::byte> file) {
  ByteReader reader(file);
  PACE_ASSIGN_OR_RETURN(const Llama2cConfig config, ReadConfig(reader));
  const int64_t expected = ExpectedValues(config);
  if (reader.num_left() % sizeof(float) != 0 ||
      reader.num_left() / sizeof(float) != static_cast<uint64_t>(expected)) {
    return DataLoss("holds ", reader.num_left(), " bytes of weights: its header asks for ",
                    expected, " values of 4 bytes");
  }

  Llama2cModel model{config, {}};
  WeightReader weights(file.subspan(reader.at()));
  const Kind embedding{"", {config.vocab_size, config.hidden_size}};
  model.tensors.push_back(weights.Take(embedding, "model.embed_tokens.weight"));
  for (const Kind& kind : LayerKinds(config)) {
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      model.tensors.push_back(weights.Take(kind, Concat("model.layers.", layer, ".", kind.name)));
    }
  }
  model.tensors.push_back(weights.Take({"", {config.hidden_size}}, "model.norm.weight"));
  weights.Skip(config.max_positions * config.head_dim());
  if (!config.tied) model.tensors.push_back(weights.Take(embedding, "lm_head.weight"));
  return model;
}

Result<Llama2cModel> ReadLlama2cModel(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  Result<Llama2cModel> model = ParseLlama2cModel(file.bytes());
  if (!model.ok()) return model.status().At(path);
  return model;
}

Result<Llama2cVocabulary> ParseLlama2cVocabulary(std::span<const std::byte> file) {
  ByteReader reader(file);
  int32_t longest = 0;
  if (!reader.Read(longest)) return DataLoss("must begin with the longest token's length");
  Llama2cVocabulary vocabulary{longest, {}};
  while (reader.num_left() > 0) {
    const size_t id = vocabulary.tokens.size();
    Llama2cToken& token = vocabulary.tokens.emplace_back();
    int32_t length = 0;
    if (!reader.Read(token.score) || !reader.Read(length)) {
      return DataLoss("token ", id, ": the file ends within it");
    }
    if (length < 0 || length > longest) {
      return InvalidArgument("token ", id, ": length = ", length, ": must be in 0 .. ", longest);
    }
    if (!reader.ReadText(static_cast<uint64_t>(length), token.bytes)) {
      return DataLoss("token ", id, ": the file ends within it");
    }
  }
  return vocabulary;
}

Result<Llama2cVocabulary> ReadLlama2cVocabulary(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  Result<Llama2cVocabulary> vocabulary = ParseLlama2cVocabulary(file.bytes());
  if (!vocabulary.ok()) return vocabulary.status().At(path);
  return vocabulary;
}

}  // namespace pace
