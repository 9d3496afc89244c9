#include "model/model_config_json.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "core/json_scanner.h"
#include "core/printable.h"
#include "model/config_defaults.h"
#include "model/rope_reader.h"
#include "text/python_text.h"

namespace pace {
namespace {

// Far above any model; small enough that no product of them overflows.
constexpr int64_t kMaxVocabulary = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxHidden = int64_t{1} << 20;
constexpr int64_t kMaxIntermediate = int64_t{1} << 22;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxExperts = 4096;
constexpr int64_t kMaxAllExperts = int64_t{1} << 18;
constexpr int64_t kMaxParameters = int64_t{1} << 46;
constexpr int64_t kMaxToken = (int64_t{1} << 31) - 1;

constexpr std::array kArchitectures = {Architecture::kLlama, Architecture::kQwen2,
                                       Architecture::kQwen3, Architecture::kQwen3Moe};

Result<Architecture> ScanArchitecture(std::string_view json) {
  std::optional<std::string> name;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    scan.key() == "model_type" ? scan.Text(name.emplace()) : scan.Skip();
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!name) return InvalidArgument("model_type: is missing");
  for (const Architecture architecture : kArchitectures) {
    if (*name == ArchitectureName(architecture)) return architecture;
  }
  return InvalidArgument("model_type = ", Printable(*name),
                         ": must be llama, qwen2, qwen3 or qwen3_moe");
}

// A token id, a list of them, or null: none.
bool ScanTokens(JsonScanner& scan, std::vector<TokenId>& out) {
  out.clear();
  if (scan.TakeNull()) return true;
  const auto one = [&] {
    int64_t id = 0;
    if (!scan.Integer(0, kMaxToken, "", id)) return false;
    out.push_back(static_cast<TokenId>(id));
    return true;
  };
  if (scan.NextKind() != JsonScanner::Kind::kArray) return one();
  scan.EnterArray();
  while (scan.NextItem()) {
    if (!one()) return false;
  }
  return scan.ok();
}

// A token id, or null: none. Old files write -1 for null.
bool ScanToken(JsonScanner& scan, std::optional<TokenId>& out) {
  out.reset();
  if (scan.TakeNull()) return true;
  int64_t id = 0;
  if (!scan.Integer(-1, kMaxToken, "", id)) return false;
  if (id >= 0) out = static_cast<TokenId>(id);
  return true;
}

// eos_token_id of a generation_config.json; `otherwise` if it is null or absent.
Result<std::vector<TokenId>> ParseEndTokens(std::string_view json, std::vector<TokenId> otherwise) {
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    const bool is_end = scan.key() == "eos_token_id";
    if (is_end && scan.TakeNull()) continue;
    is_end ? ScanTokens(scan, otherwise) : scan.Skip();
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  return otherwise;
}

struct SizeKey {
  std::string_view name;
  int64_t ModelConfig::* field;
  int64_t maximum;
};
constexpr SizeKey kSizeKeys[] = {
    {"vocab_size", &ModelConfig::vocab_size, kMaxVocabulary},
    {"hidden_size", &ModelConfig::hidden_size, kMaxHidden},
    {"intermediate_size", &ModelConfig::intermediate_size, kMaxIntermediate},
    {"num_hidden_layers", &ModelConfig::num_layers, kMaxLayers},
    {"num_attention_heads", &ModelConfig::num_heads, kMaxHeads},
    {"max_position_embeddings", &ModelConfig::max_positions, kMaxPositions},
};

class ConfigReader {
 public:
  ConfigReader(std::string_view json, Architecture architecture)
      : scan_(json),
        is_llama_(architecture == Architecture::kLlama),
        is_qwen2_(architecture == Architecture::kQwen2),
        is_moe_(architecture == Architecture::kQwen3Moe) {
    ConfigDefaults defaults = DefaultsOf(architecture);
    config_ = std::move(defaults.config);
    moe_ = std::move(defaults.moe);
    num_kv_heads_ = defaults.num_kv_heads;
    head_dim_ = defaults.head_dim;
  }

  Result<ModelConfig> Read() {
    scan_.EnterObject();
    while (scan_.NextKey()) {
      if (!ScanSize() && !ScanMoe() && !ScanRope() && !ScanAttention()) ScanRest();
    }
    scan_.End();
    if (!scan_.ok()) return scan_.status();
    PACE_RETURN_IF_ERROR(Resolve());
    return std::move(config_);
  }

 private:
  // Each of these returns whether the current key is one of its own.
  bool ScanSize() {
    for (const SizeKey& size : kSizeKeys) {
      if (scan_.key() != size.name) continue;
      scan_.Integer(1, size.maximum, "", config_.*size.field);
      return true;
    }
    return false;
  }

  bool ScanMoe() {
    const std::string_view key = scan_.key();
    if (!is_moe_) return false;
    if (key == "num_experts") {
      scan_.Integer(0, kMaxExperts, "", num_experts_.emplace());
    } else if (key == "num_local_experts") {
      scan_.Integer(0, kMaxExperts, "", num_local_experts_.emplace());
    } else if (key == "num_experts_per_tok") {
      scan_.Integer(1, kMaxExperts, "", moe_.num_experts_per_token);
    } else if (key == "moe_intermediate_size") {
      scan_.Integer(1, kMaxIntermediate, "", moe_.intermediate_size);
    } else if (key == "decoder_sparse_step") {
      scan_.Integer(1, kMaxLayers, "", moe_.sparse_step);
    } else if (key == "norm_topk_prob") {
      scan_.Bool(moe_.normalize_weights);
    } else if (key == "mlp_only_layers") {
      ScanDenseLayers();
    } else {
      return false;
    }
    return true;
  }

  void ScanDenseLayers() {
    moe_.dense_layers.clear();
    if (scan_.TakeNull()) return;
    scan_.EnterArray();
    while (scan_.NextItem()) scan_.Integer(0, kMaxLayers, "", moe_.dense_layers.emplace_back());
  }

  bool ScanRope() {
    const std::string_view key = scan_.key();
    if (key == "rope_theta") {
      scan_.Real(kMinRopeTheta, kMaxRopeTheta, "", rope_theta_.emplace());
    } else if (key == "rope_scaling") {
      ScanRopeFields(scan_, rope_scaling_);
    } else if (key == "rope_parameters") {
      ScanRopeFields(scan_, rope_parameters_);
    } else if (key == "partial_rotary_factor") {
      ScanPartialRotaryFactor(scan_);
    } else if (key == "original_max_position_embeddings") {
      if (!scan_.TakeNull()) scan_.Integer(1, kMaxPositions, "", original_max_.emplace());
    } else {
      return false;
    }
    return true;
  }

  bool ScanAttention() {
    const std::string_view key = scan_.key();
    if (key == "num_key_value_heads") {
      num_kv_heads_.reset();
      const bool is_null = !is_moe_ && scan_.TakeNull();
      if (!is_null) scan_.Integer(1, kMaxHeads, "", num_kv_heads_.emplace());
    } else if (key == "head_dim") {
      head_dim_.reset();
      const bool is_null = (is_llama_ || is_qwen2_) && scan_.TakeNull();
      if (!is_null) scan_.Integer(2, kMaxHeadDim, "", head_dim_.emplace());
    } else if (key == "attention_bias" && !is_qwen2_) {
      scan_.Bool(config_.output_bias);
      config_.qkv_bias = config_.output_bias;
    } else if (key == "layer_types") {
      ScanLayerTypes();
    } else if (key == "use_sliding_window" && !is_llama_) {
      scan_.Bool(use_sliding_window_);
    } else if (key == "sliding_window" && !is_llama_) {
      has_window_ = !scan_.TakeNull();
      int64_t window = 0;
      if (has_window_) scan_.Integer(0, kMaxPositions, "", window);
    } else if (key == "attention_dropout") {
      double dropout = 0;
      if (scan_.TakeNull() || !scan_.Real(0, 1, "", dropout) || dropout == 0) return true;
      scan_.FailValue(Concat(dropout), "must be 0", "dropout is not supported");
    } else {
      return false;
    }
    return true;
  }

  void ScanLayerTypes() {
    num_layer_types_.reset();
    if (scan_.TakeNull()) return;
    num_layer_types_ = 0;
    scan_.EnterArray();
    while (scan_.NextItem()) {
      std::string type;
      if (!scan_.Text(type)) return;
      if (type != "full_attention" && type != "attention") {
        scan_.FailValue(type, "must be full_attention", "other kinds are not supported");
      }
      ++*num_layer_types_;
    }
  }

  void ScanRest() {
    const std::string_view key = scan_.key();
    if (key == "model_type" || IsInertConfigKey(key)) {
      scan_.Skip();
    } else if (key == "rms_norm_eps") {
      scan_.Real(0, 1, "", config_.norm_epsilon);
    } else if (key == "tie_word_embeddings") {
      scan_.Bool(config_.tied);
    } else if (key == "mlp_bias" && is_llama_) {
      scan_.Bool(config_.mlp_bias);
    } else if (key == "bos_token_id") {
      ScanToken(scan_, config_.bos);
    } else if (key == "pad_token_id") {
      ScanToken(scan_, config_.pad);
    } else if (key == "eos_token_id") {
      has_eos_ = ScanTokens(scan_, config_.eos);
    } else if (key == "dtype") {
      ScanDtype(dtype_);
    } else if (key == "torch_dtype") {
      ScanDtype(torch_dtype_);
    } else if (key == "hidden_act") {
      std::string name;
      if (!scan_.Text(name) || name == "silu" || name == "swish") return;
      scan_.FailValue(name, "must be silu", "other activations are not supported");
    } else if (key == "pretraining_tp") {
      int64_t parts = 0;
      if (scan_.TakeNull() || !scan_.Integer(0, kMaxHeads, "", parts) || parts <= 1) return;
      scan_.FailValue(Concat(parts), "must be 1", "sliced projections are not supported");
    } else {
      ScanUnknown();
    }
  }

  void ScanDtype(std::optional<Dtype>& out) {
    std::string name;
    if (scan_.TakeNull() || !scan_.Text(name)) return;
    if (name == "float32") {
      out = Dtype::kF32;
    } else if (name == "float16") {
      out = Dtype::kF16;
    } else if (name == "bfloat16") {
      out = Dtype::kBF16;
    } else {
      scan_.FailValue(name, "must be float32, float16 or bfloat16", "");
    }
  }

  // What is null, false or empty asks for nothing.
  void ScanUnknown() {
    const std::string key(scan_.key());
    bool asks = false;
    std::string text;
    switch (scan_.NextKind()) {
      case JsonScanner::Kind::kNull:
        scan_.Skip();
        break;
      case JsonScanner::Kind::kBool:
        scan_.Bool(asks);
        break;
      case JsonScanner::Kind::kText:
        scan_.Text(text);
        asks = !text.empty();
        break;
      case JsonScanner::Kind::kArray:
        asks = scan_.EnterArray() && scan_.NextItem();
        break;
      case JsonScanner::Kind::kObject:
        asks = scan_.EnterObject() && scan_.NextKey();
        break;
      case JsonScanner::Kind::kNumber:
        asks = true;
        break;
    }
    if (!asks) return;
    if (key == "quantization_config") {
      scan_.FailWith(
          InvalidArgument(key, ": quantised weights are not supported (F32, F16, BF16)"));
    } else {
      scan_.FailWith(InvalidArgument(Printable(key), ": is not supported for model_type ",
                                     ArchitectureName(config_.architecture),
                                     ": remove it if it does not change what the model computes"));
    }
  }

  Status Resolve() {
    config_.num_kv_heads = num_kv_heads_.value_or(config_.num_heads);
    config_.head_dim = head_dim_.value_or(config_.hidden_size / config_.num_heads);
    config_.dtype = dtype_.value_or(torch_dtype_.value_or(Dtype::kF32));
    const RopeFields& rope = rope_scaling_.present ? rope_scaling_ : rope_parameters_;
    PACE_ASSIGN_OR_RETURN(RopeConfig resolved,
                          ResolveRope(rope, rope_theta_, original_max_, config_.max_positions));
    config_.rope = resolved;
    PACE_RETURN_IF_ERROR(CheckAttention());
    if (is_moe_) PACE_RETURN_IF_ERROR(ResolveMoe());
    if (config_.pad && *config_.pad >= config_.vocab_size) {
      return InvalidArgument("pad_token_id = ", *config_.pad, ": must be less than vocab_size, ",
                             config_.vocab_size);
    }
    if (has_eos_) PACE_RETURN_IF_ERROR(CheckEndTokens(config_));
    if (config_.num_parameters() > kMaxParameters) {
      return InvalidArgument("the sizes make ", config_.num_parameters(),
                             " parameters: must be at most ", kMaxParameters);
    }
    return Status::Ok();
  }

  Status CheckAttention() const {
    const ModelConfig& c = config_;
    if (c.num_heads % c.num_kv_heads != 0) {
      return InvalidArgument("num_key_value_heads = ", c.num_kv_heads,
                             ": must divide num_attention_heads, ", c.num_heads);
    }
    if (c.head_dim < 2 || c.head_dim > kMaxHeadDim || c.head_dim % 2 != 0) {
      return InvalidArgument("head_dim = ", c.head_dim, ": must be even, from 2 to ", kMaxHeadDim,
                             head_dim_ ? "" : " (it is hidden_size / num_attention_heads)");
    }
    if (use_sliding_window_ && has_window_) {
      return InvalidArgument(
          "use_sliding_window = true: must be false (sliding windows are not supported)");
    }
    if (num_layer_types_ && *num_layer_types_ != c.num_layers) {
      return InvalidArgument("layer_types: lists ", *num_layer_types_,
                             " layers: must be num_hidden_layers, ", c.num_layers);
    }
    return Status::Ok();
  }

  // Version 5 writes num_local_experts, version 4 num_experts.
  Status ResolveMoe() {
    if (num_experts_ && num_local_experts_ && *num_experts_ != *num_local_experts_) {
      return InvalidArgument("num_local_experts = ", *num_local_experts_, ": must be num_experts, ",
                             *num_experts_);
    }
    moe_.num_experts = num_experts_.value_or(num_local_experts_.value_or(moe_.num_experts));
    if (moe_.num_experts == 0) return Status::Ok();
    if (moe_.num_experts_per_token > moe_.num_experts) {
      return InvalidArgument("num_experts_per_tok = ", moe_.num_experts_per_token,
                             ": must be at most num_experts, ", moe_.num_experts);
    }
    if (moe_.num_experts * config_.num_layers > kMaxAllExperts) {
      return InvalidArgument("num_experts = ", moe_.num_experts, ": times num_hidden_layers, ",
                             config_.num_layers, ", must be at most ", kMaxAllExperts);
    }
    config_.moe = std::move(moe_);
    return Status::Ok();
  }

  JsonScanner scan_;
  const bool is_llama_;
  const bool is_qwen2_;
  const bool is_moe_;
  ModelConfig config_;
  MoeConfig moe_;
  std::optional<int64_t> num_kv_heads_;
  std::optional<int64_t> head_dim_;
  std::optional<int64_t> num_experts_;
  std::optional<int64_t> num_local_experts_;
  std::optional<int64_t> num_layer_types_;
  bool use_sliding_window_ = false;
  bool has_eos_ = false;
  bool has_window_ = true;  // by default of 4,096 tokens
  std::optional<double> rope_theta_;
  std::optional<int64_t> original_max_;
  RopeFields rope_scaling_;
  RopeFields rope_parameters_;
  std::optional<Dtype> dtype_;
  std::optional<Dtype> torch_dtype_;
};

std::string_view ClassName(Architecture architecture) {
  switch (architecture) {
    case Architecture::kLlama:
      return "LlamaForCausalLM";
    case Architecture::kQwen2:
      return "Qwen2ForCausalLM";
    case Architecture::kQwen3:
      return "Qwen3ForCausalLM";
    case Architecture::kQwen3Moe:
      return "Qwen3MoeForCausalLM";
  }
  PACE_CHECK(false, "architecture ", static_cast<int>(architecture));
}

std::string_view TorchName(Dtype dtype) {
  if (dtype == Dtype::kF16) return "float16";
  if (dtype == Dtype::kBF16) return "bfloat16";
  PACE_CHECK(dtype == Dtype::kF32, DtypeName(dtype));
  return "float32";
}

Value TextValue(std::string_view text) {
  return Value(std::string(text));
}

Value TokenValue(std::optional<TokenId> token) {
  return token ? Value(int64_t{*token}) : Value::MakeNone();
}

Value EndTokens(const ModelConfig& config) {
  if (config.eos.empty()) return Value::MakeNone();
  if (config.eos.size() == 1) return TokenValue(config.eos.front());
  ValueList tokens;
  for (const TokenId token : config.eos) tokens.push_back(TokenValue(token));
  return Value::MakeList(std::move(tokens));
}

Value RopeScaling(const RopeConfig& rope) {
  if (rope.type == RopeType::kDefault) return Value::MakeNone();
  const bool is_linear = rope.type == RopeType::kLinear;
  ValueDict json;
  json.Put("rope_type", TextValue(is_linear ? "linear" : "llama3"));
  json.Put("factor", Value(rope.factor));
  if (!is_linear) {
    json.Put("low_freq_factor", Value(rope.low_freq_factor));
    json.Put("high_freq_factor", Value(rope.high_freq_factor));
    json.Put("original_max_position_embeddings", Value(rope.original_max_positions));
  }
  return Value::MakeDict(std::move(json));
}

void PutMoe(const ModelConfig& config, ValueDict& json) {
  const MoeConfig moe = config.moe.value_or(MoeConfig{});
  ValueList dense_layers;
  for (const int64_t layer : moe.dense_layers) dense_layers.emplace_back(layer);
  json.Put("num_experts", Value(moe.num_experts));
  json.Put("num_experts_per_tok", Value(std::max<int64_t>(moe.num_experts_per_token, 1)));
  json.Put("moe_intermediate_size", Value(std::max<int64_t>(moe.intermediate_size, 1)));
  json.Put("norm_topk_prob", Value(moe.normalize_weights));
  json.Put("decoder_sparse_step", Value(moe.sparse_step));
  json.Put("mlp_only_layers", Value::MakeList(std::move(dense_layers)));
}

// As transformers writes its files.
std::string Written(ValueDict json) {
  const Result<std::string> text =
      ToPythonJson(Value::MakeDict(std::move(json)), {.indent = "  ", .item_separator = ","});
  PACE_CHECK(text.ok(), text.status().message());
  return *text + "\n";
}

}  // namespace

Status CheckEndTokens(const ModelConfig& config) {
  for (const TokenId id : config.eos) {
    if (id < config.vocab_size) continue;
    return InvalidArgument("eos_token_id = ", id, ": must be less than vocab_size, ",
                           config.vocab_size);
  }
  return Status::Ok();
}

Result<ModelConfig> ParseModelConfig(std::string_view json) {
  PACE_ASSIGN_OR_RETURN(const Architecture architecture, ScanArchitecture(json));
  return ConfigReader(json, architecture).Read();
}

Result<ModelConfig> ReadModelConfig(const std::string& folder, const std::string& file) {
  const std::string path = (std::filesystem::path(folder) / file).string();
  PACE_ASSIGN_OR_RETURN(const MappedFile text, MappedFile::Open(path));
  Result<ModelConfig> config = ParseModelConfig(text.text());
  if (!config.ok()) return config.status().At(path);

  const std::string generation =
      (std::filesystem::path(folder) / "generation_config.json").string();
  if (!Files::Default().Exists(generation)) return config;
  PACE_ASSIGN_OR_RETURN(const MappedFile beside, MappedFile::Open(generation));
  Result<std::vector<TokenId>> eos = ParseEndTokens(beside.text(), config->eos);
  if (!eos.ok()) return eos.status().At(generation);
  config->eos = std::move(*eos);
  PACE_RETURN_IF_ERROR(CheckEndTokens(*config).At(generation));
  return config;
}

std::string ModelConfigJson(const ModelConfig& config) {
  ValueDict json;
  json.Put("architectures", Value::MakeList({TextValue(ClassName(config.architecture))}));
  json.Put("model_type", TextValue(ArchitectureName(config.architecture)));
  json.Put("vocab_size", Value(config.vocab_size));
  json.Put("hidden_size", Value(config.hidden_size));
  json.Put("intermediate_size", Value(config.intermediate_size));
  json.Put("num_hidden_layers", Value(config.num_layers));
  json.Put("num_attention_heads", Value(config.num_heads));
  json.Put("num_key_value_heads", Value(config.num_kv_heads));
  json.Put("head_dim", Value(config.head_dim));
  json.Put("hidden_act", TextValue("silu"));
  json.Put("max_position_embeddings", Value(config.max_positions));
  json.Put("rms_norm_eps", Value(config.norm_epsilon));
  json.Put("rope_theta", Value(config.rope.theta));
  json.Put("rope_scaling", RopeScaling(config.rope));
  json.Put("tie_word_embeddings", Value(config.tied));
  json.Put("attention_dropout", Value(0.0));
  // Qwen2 always has biases and no key for them.
  if (config.architecture != Architecture::kQwen2) {
    json.Put("attention_bias", Value(config.qkv_bias));
  }
  if (config.architecture == Architecture::kLlama) json.Put("mlp_bias", Value(config.mlp_bias));
  if (config.architecture != Architecture::kLlama) json.Put("use_sliding_window", Value(false));
  if (config.architecture == Architecture::kQwen3Moe) PutMoe(config, json);
  json.Put("torch_dtype", TextValue(TorchName(config.dtype)));
  json.Put("bos_token_id", TokenValue(config.bos));
  json.Put("pad_token_id", TokenValue(config.pad));
  json.Put("eos_token_id", EndTokens(config));
  return Written(std::move(json));
}

std::string GenerationConfigJson(const ModelConfig& config) {
  ValueDict json;
  json.Put("bos_token_id", TokenValue(config.bos));
  json.Put("pad_token_id", TokenValue(config.pad));
  json.Put("eos_token_id", EndTokens(config));
  return Written(std::move(json));
}

Result<std::string> WithStoredDtype(std::string_view config_json, Dtype dtype) {
  PACE_ASSIGN_OR_RETURN(const Value value, ParsePythonJson(config_json));
  PACE_CHECK(value.is_dict(), "a config that was read before");
  ValueDict json = value.dict();
  // transformers 5 writes `dtype`, version 4 `torch_dtype`.
  const bool has_new = json.Find("dtype") != nullptr;
  const bool has_old = json.Find("torch_dtype") != nullptr;
  if (has_new) json.Put("dtype", TextValue(TorchName(dtype)));
  if (!has_new || has_old) json.Put("torch_dtype", TextValue(TorchName(dtype)));
  return Written(std::move(json));
}

}  // namespace pace
