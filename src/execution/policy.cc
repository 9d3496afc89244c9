#include "execution/policy.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "execution/tiny_model.h"
#include "formats/aside_file.h"
#include "formats/safetensors.h"
#include "task/character_tokenizer.h"
#include "text/read_file.h"

namespace pace {
namespace {

constexpr std::string_view kTinyName = "tiny";
constexpr int64_t kMaxShardBytes = int64_t{5'000'000'000};
constexpr size_t kMaxTextBytes = size_t{256} << 20;
constexpr int64_t kNewPositions = 1024;
constexpr double kNewScale = 0.05;  // deviation of random weights
// What a folder says about its texts.
constexpr std::string_view kTextFiles[] = {"tokenizer.json",      "tokenizer_config.json",
                                           "chat_template.jinja", "special_tokens_map.json",
                                           "vocab.json",          "merges.txt",
                                           "added_tokens.json"};

Status WriteFile(const std::string& path, std::string_view text) {
  Result<AsideFile> file = AsideFile::Create(path);
  if (!file.ok()) return file.status();
  PACE_RETURN_IF_ERROR(file->Append(text));
  return file->Commit();
}

// A model may be a plain one, without a template.
Result<std::optional<ChatTemplate>> LoadTemplate(const std::string& folder) {
  if (!std::filesystem::exists(folder + "/tokenizer_config.json") &&
      !std::filesystem::exists(folder + "/chat_template.jinja")) {
    return std::optional<ChatTemplate>();
  }
  Result<ChatTemplate> chat = ChatTemplate::Load(folder);
  if (chat.ok()) return std::optional<ChatTemplate>(std::move(chat).value());
  if (chat.status().code() == StatusCode::kNotFound) return std::optional<ChatTemplate>();
  return chat.status();
}

Result<Policy> LoadFolder(const std::string& folder) {
  Result<ModelConfig> config = ReadModelConfig(folder);
  if (!config.ok()) return config.status();
  Result<WeightSet> weights = WeightSet::Load(*config, folder);
  if (!weights.ok()) return weights.status();
  Result<Tokenizer> tokenizer = Tokenizer::Load(folder);
  if (!tokenizer.ok()) return tokenizer.status();
  Policy policy{.config = std::move(config).value(),
                .weights = std::move(weights).value(),
                .tokenizer = std::move(tokenizer).value(),
                .chat_template = std::nullopt,
                .texts = {}};
  for (const std::string_view name : kTextFiles) {
    const std::string path = folder + "/" + std::string(name);
    if (!std::filesystem::exists(path)) continue;
    Result<std::string> text = ReadFile(path, kMaxTextBytes);
    if (!text.ok()) return text.status();
    policy.texts.emplace(name, std::move(text).value());
  }
  Result<std::optional<ChatTemplate>> chat = LoadTemplate(folder);
  if (!chat.ok()) return chat.status();
  policy.chat_template = std::move(chat).value();
  return policy;
}

Result<Policy> LoadTiny() {
  const TinyModelFiles files = EmbeddedTinyModel();
  if (files.weights.empty()) {
    return NotFound("policy.model = tiny: this build of pace has no model inside");
  }
  Result<ModelConfig> config = ParseModelConfig(files.config);
  if (!config.ok()) return config.status();
  Result<SafetensorsContents> contents = ParseSafetensors(files.weights);
  if (!contents.ok()) return contents.status();
  Result<WeightSet> weights =
      WeightSet::Create(*config, std::move(contents).value().tensors, nullptr);
  if (!weights.ok()) return weights.status();
  Result<Tokenizer> tokenizer = Tokenizer::Parse(CharacterTokenizerJson());
  if (!tokenizer.ok()) return tokenizer.status();
  return Policy{.config = std::move(config).value(),
                .weights = std::move(weights).value(),
                .tokenizer = std::move(tokenizer).value(),
                .chat_template = std::nullopt,
                .texts = {{"tokenizer.json", CharacterTokenizerJson()}}};
}

}  // namespace

Result<Policy> LoadPolicy(const PolicyOptions& options) {
  if (options.model == kTinyName) return LoadTiny();
  return LoadFolder(options.model);
}

Result<Policy> NewCharacterPolicy(const ModelOptions& shape, uint64_t seed) {
  ModelConfig config;
  config.architecture = shape.num_experts > 0 ? Architecture::kQwen3Moe : Architecture::kQwen3;
  config.vocab_size = kNumCharacterTokens;
  config.hidden_size = shape.hidden;
  config.intermediate_size = shape.ffn;
  config.num_layers = shape.num_layers;
  config.num_heads = shape.num_heads;
  config.num_kv_heads = shape.num_kv_heads;
  config.head_dim = shape.head_dim;
  config.max_positions = kNewPositions;
  config.rope.theta = 1e4;
  config.tied = shape.tied_embeddings;
  config.qk_norm = true;
  config.pad = kPadTokenId;
  config.eos = {kEndTokenId};
  if (shape.num_experts > 0) {
    config.moe = MoeConfig{.num_experts = shape.num_experts,
                           .num_experts_per_token = shape.experts_per_token,
                           .intermediate_size = shape.expert_ffn,
                           .normalize_weights = true,
                           .sparse_step = 1,
                           .dense_layers = {}};
  }
  // The rules of a config are those of its file.
  const Result<ModelConfig> checked = ParseModelConfig(ModelConfigJson(config));
  if (!checked.ok()) return checked.status().At("model");
  Result<Tokenizer> tokenizer = Tokenizer::Parse(CharacterTokenizerJson());
  if (!tokenizer.ok()) return tokenizer.status();
  return Policy{.config = config,
                .weights = RandomWeights(config, seed, kNewScale),
                .tokenizer = std::move(tokenizer).value(),
                .chat_template = std::nullopt,
                .texts = {{"tokenizer.json", CharacterTokenizerJson()}}};
}

Status SavePolicy(const std::string& folder, const Policy& policy, const WeightSet& weights,
                  Dtype dtype) {
  PACE_RETURN_IF_ERROR(SaveModel(folder, policy.config, weights, dtype, kMaxShardBytes));
  for (const auto& [name, text] : policy.texts) {
    PACE_RETURN_IF_ERROR(WriteFile(folder + "/" + name, text));
  }
  return Status::Ok();
}

}  // namespace pace
