#include "execution/policy.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "core/atomic_file.h"
#include "core/file.h"
#include "execution/tiny_model.h"
#include "formats/safetensors.h"
#include "model/model_config_json.h"
#include "model/weight_set.h"
#include "task/character_tokenizer.h"

namespace pace {
namespace {

constexpr int64_t kMaxShardBytes = int64_t{5'000'000'000};
constexpr size_t kMaxTextBytes = size_t{256} << 20;
constexpr int64_t kNewPositions = 1024;
constexpr double kNewScale = 0.05;  // deviation of random weights
constexpr std::string_view kConfigName = "config.json";
// What a folder says about its texts and its model.
constexpr std::string_view kTextFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "chat_template.jinja",
                                           "special_tokens_map.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "added_tokens.json",
                                           "generation_config.json",
                                           kConfigName};

// False only where a file is known to be absent; reading says what is wrong with others.
bool MayExist(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::status(path, ignored).type() != std::filesystem::file_type::not_found;
}

// A model may be a plain one, without a template.
Result<std::optional<ChatTemplate>> LoadTemplate(const std::string& folder) {
  if (!MayExist(folder + "/tokenizer_config.json") && !MayExist(folder + "/chat_template.jinja")) {
    return std::optional<ChatTemplate>();
  }
  Result<ChatTemplate> chat = ChatTemplate::Load(folder);
  if (chat.ok()) return std::optional<ChatTemplate>(std::move(chat).value());
  if (chat.status().code() == StatusCode::kNotFound) return std::optional<ChatTemplate>();
  return chat.status();
}

Result<Policy> LoadFolder(const std::string& folder) {
  PACE_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(folder));
  PACE_ASSIGN_OR_RETURN(WeightSet weights, WeightSet::Load(config, folder));
  PACE_RETURN_IF_ERROR(CheckFinite(weights).At(folder));
  PACE_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(folder));
  Policy policy{.config = std::move(config),
                .weights = std::move(weights),
                .tokenizer = std::move(tokenizer),
                .chat_template = std::nullopt,
                .texts = {}};
  for (const std::string_view name : kTextFiles) {
    const std::string path = folder + "/" + std::string(name);
    if (!MayExist(path)) continue;
    PACE_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxTextBytes));
    policy.texts.emplace(name, std::move(text));
  }
  PACE_ASSIGN_OR_RETURN(policy.chat_template, LoadTemplate(folder));
  return policy;
}

// The tokenizer of a generated task, with weights that are nothing yet.
struct Characters {
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template = {};
  std::map<std::string, std::string> texts = {};
  int64_t num_tokens = 0;
  TokenId pad = 0;
  TokenId end = 0;
};

Result<Characters> MakeCharacters(CharacterSet set) {
  const bool tools = set == CharacterSet::kTools;
  const std::string json = tools ? ToolTokenizerJson() : CharacterTokenizerJson();
  PACE_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Parse(json));
  Characters made{.tokenizer = std::move(tokenizer)};
  made.texts.emplace("tokenizer.json", json);
  made.num_tokens = tools ? kNumToolTokens : kNumCharacterTokens;
  made.pad = tools ? kToolPadTokenId : kPadTokenId;
  made.end = tools ? kToolEndTokenId : kEndTokenId;
  if (!tools) return made;
  PACE_ASSIGN_OR_RETURN(made.chat_template, ChatTemplate::Parse(kToolChatTemplate));
  made.texts.emplace("chat_template.jinja", kToolChatTemplate);
  return made;
}

Result<Policy> LoadBuiltIn(const BuiltInModel& model) {
  PACE_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(model.config));
  PACE_ASSIGN_OR_RETURN(SafetensorsContents contents, ParseSafetensors(model.weights));
  PACE_ASSIGN_OR_RETURN(WeightSet weights,
                        WeightSet::Create(config, std::move(contents).tensors, nullptr));
  const bool tools = config.vocab_size == kNumToolTokens;
  PACE_ASSIGN_OR_RETURN(Characters characters,
                        MakeCharacters(tools ? CharacterSet::kTools : CharacterSet::kArithmetic));
  return Policy{.config = std::move(config),
                .weights = std::move(weights),
                .tokenizer = std::move(characters.tokenizer),
                .chat_template = std::move(characters.chat_template),
                .texts = std::move(characters.texts)};
}

}  // namespace

Result<Policy> LoadPolicy(const PolicyOptions& options) {
  if (const BuiltInModel* model = FindBuiltInModel(options.model)) return LoadBuiltIn(*model);
  return LoadFolder(options.model);
}

Result<Policy> NewCharacterPolicy(const ModelOptions& shape, uint64_t seed, CharacterSet set) {
  PACE_ASSIGN_OR_RETURN(Characters characters, MakeCharacters(set));
  ModelConfig config;
  config.architecture = shape.num_experts > 0 ? Architecture::kQwen3Moe : Architecture::kQwen3;
  config.vocab_size = characters.num_tokens;
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
  config.pad = characters.pad;
  config.eos = {characters.end};
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
  return Policy{.config = config,
                .weights = RandomWeights(config, seed, kNewScale),
                .tokenizer = std::move(characters.tokenizer),
                .chat_template = std::move(characters.chat_template),
                .texts = std::move(characters.texts)};
}

Status SavePolicy(const std::string& folder, const Policy& policy, const WeightSet& weights,
                  Dtype dtype) {
  PACE_RETURN_IF_ERROR(SaveModel(folder, policy.config, weights, dtype, kMaxShardBytes));
  // The source's own config.json says more than ours: it replaces the one just written.
  for (const auto& [name, text] : policy.texts) {
    const bool is_config = name == kConfigName;
    PACE_ASSIGN_OR_RETURN(const std::string stored,
                          is_config ? WithStoredDtype(text, dtype) : Result<std::string>(text));
    PACE_RETURN_IF_ERROR(WriteFileAtomically(folder + "/" + name, stored));
  }
  return Status::Ok();
}

}  // namespace pace
