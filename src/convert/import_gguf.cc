#include "convert/import_gguf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "convert/tokenizer_spec.h"
#include "core/printable.h"
#include "formats/gguf_import.h"

namespace pace {
namespace {

// The file, and what reads it: they live as long as the source's function.
struct OpenFile {
  GgufFile file;
  std::vector<const GgufTensor*> tensors;
  std::optional<GgufImporter> importer;
};

Status ReadTokenizer(const GgufFile& file, ModelSource& source) {
  PACE_ASSIGN_OR_RETURN(const std::optional<TokenizerSpec> spec, GgufTokenizer(file));
  if (!spec.has_value()) return Status::Ok();
  if (static_cast<int64_t>(spec->tokens.size()) > source.config.vocab_size) {
    return InvalidArgument(file.path(), ": metadata tokenizer.ggml.tokens: ", spec->tokens.size(),
                           " tokens, but token_embd.weight has ", source.config.vocab_size,
                           " rows");
  }
  Result<std::vector<FolderText>> texts = TokenizerFiles(*spec);
  if (!texts.ok()) return texts.status().At(file.path());
  source.texts = std::move(texts).value();
  return Status::Ok();
}

constexpr int64_t kMaxCount = int64_t{1} << 24;

// After the architecture and a dot. What is read, and what says nothing about
// the computation.
constexpr auto kKnownKeys = std::to_array<std::string_view>({
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "tensor_data_layout",
    "vocab_size",
});

// The files hold float32; the decimal that was meant is the shortest one.
double Decimal(double value) {
  const std::string text = Concat(static_cast<float>(value));
  double decimal = value;
  std::from_chars(text.data(), text.data() + text.size(), decimal);
  return decimal;
}

bool IsOff(const GgufValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer == 0;
  if (const auto* integer = std::get_if<uint64_t>(&value)) return *integer == 0;
  if (const auto* real = std::get_if<double>(&value)) return *real == 0;
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty() || *text == "none";
  return false;
}

class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  Status Read(ModelConfig& config) {
    PACE_RETURN_IF_ERROR(CheckKeys());
    PACE_RETURN_IF_ERROR(ReadCount("block_count", config.num_layers));
    PACE_RETURN_IF_ERROR(ReadCount("embedding_length", config.hidden_size));
    PACE_RETURN_IF_ERROR(ReadCount("feed_forward_length", config.intermediate_size));
    PACE_RETURN_IF_ERROR(ReadCount("context_length", config.max_positions));
    PACE_RETURN_IF_ERROR(ReadHeads(config));
    PACE_ASSIGN_OR_RETURN(const double epsilon,
                          file_.Real(prefix_ + "attention.layer_norm_rms_epsilon"));
    config.norm_epsilon = Decimal(epsilon);
    PACE_RETURN_IF_ERROR(ReadRope(config));
    PACE_RETURN_IF_ERROR(ReadVocabSize(config));
    return ReadTokens(config);
  }

 private:
  bool Has(std::string_view key) const { return file_.metadata().contains(Concat(prefix_, key)); }

  Status At(std::string_view key, std::string_view value, std::string_view rule) const {
    return InvalidArgument(file_.path(), ": metadata ", prefix_, key, " = ", value, ": ", rule);
  }

  Status CheckKeys() const {
    for (const auto& [key, value] : file_.metadata()) {
      if (!key.starts_with(prefix_)) continue;
      const std::string_view rest = std::string_view(key).substr(prefix_.size());
      const bool known = std::find(kKnownKeys.begin(), kKnownKeys.end(), rest) != kKnownKeys.end();
      if (known || IsOff(value)) continue;
      return InvalidArgument(file_.path(), ": metadata ", Printable(key),
                             ": is not supported (it may change the model)");
    }
    return Status::Ok();
  }

  Status ReadCount(std::string_view key, int64_t& out) const {
    PACE_ASSIGN_OR_RETURN(const int64_t value, file_.Integer(Concat(prefix_, key)));
    if (value < 1 || value > kMaxCount) {
      return At(key, Concat(value), Concat("must be in 1 .. ", kMaxCount));
    }
    out = value;
    return Status::Ok();
  }

  Status ReadHeads(ModelConfig& config) const {
    PACE_RETURN_IF_ERROR(ReadCount("attention.head_count", config.num_heads));
    config.num_kv_heads = config.num_heads;
    if (Has("attention.head_count_kv")) {
      PACE_RETURN_IF_ERROR(ReadCount("attention.head_count_kv", config.num_kv_heads));
    }
    config.head_dim = config.hidden_size / config.num_heads;
    if (Has("attention.key_length")) {
      PACE_RETURN_IF_ERROR(ReadCount("attention.key_length", config.head_dim));
    }
    // One number for all three.
    for (const std::string_view key : {"attention.value_length", "rope.dimension_count"}) {
      int64_t size = config.head_dim;
      if (Has(key)) PACE_RETURN_IF_ERROR(ReadCount(key, size));
      if (size != config.head_dim) {
        return At(key, Concat(size), Concat("must be the heads' size, ", config.head_dim));
      }
    }
    return Status::Ok();
  }

  Status ReadRope(ModelConfig& config) const {
    RopeConfig& rope = config.rope;
    if (Has("rope.freq_base")) {
      PACE_ASSIGN_OR_RETURN(const double base, file_.Real(prefix_ + "rope.freq_base"));
      rope.theta = Decimal(base);
    }
    if (Has("rope.scaling.type")) {
      PACE_ASSIGN_OR_RETURN(const std::string type, file_.Text(prefix_ + "rope.scaling.type"));
      if (type == "linear") {
        PACE_ASSIGN_OR_RETURN(const double factor, file_.Real(prefix_ + "rope.scaling.factor"));
        rope.type = RopeType::kLinear;
        rope.factor = Decimal(factor);
      } else if (type != "none") {
        return At("rope.scaling.type", Printable(type), "must be none or linear");
      }
    }
    const GgufTensor* const factors = file_.Find(kRopeFrequencies);
    return factors == nullptr ? Status::Ok() : ReadRopeFactors(*factors, config);
  }

  // What Llama 3's rule divides each frequency by. The rule has four numbers, of
  // which every model so far shares two, and the largest divisor is the third.
  Status ReadRopeFactors(const GgufTensor& tensor, ModelConfig& config) const {
    const Result<std::vector<float>> divisors = Dequantize(tensor);
    if (!divisors.ok()) return divisors.status().At(file_.path());
    const auto unknown = [&] {
      return InvalidArgument(file_.path(), ": tensor ", kRopeFrequencies,
                             ": must be the frequencies of Llama 3's rule");
    };
    const auto num_frequencies = static_cast<size_t>(config.head_dim / 2);
    if (divisors->size() != num_frequencies || config.rope.type != RopeType::kDefault) {
      return unknown();
    }
    const std::vector<float> plain = RopeFrequencies(config);
    config.rope.type = RopeType::kLlama3;
    config.rope.factor = Decimal(*std::max_element(divisors->begin(), divisors->end()));
    config.rope.low_freq_factor = 1.0;
    config.rope.high_freq_factor = 4.0;
    config.rope.original_max_positions = 8192;
    if (Has("rope.scaling.original_context_length")) {
      PACE_RETURN_IF_ERROR(
          ReadCount("rope.scaling.original_context_length", config.rope.original_max_positions));
    }
    if (!(config.rope.factor >= 1.0) || !std::isfinite(config.rope.factor)) return unknown();
    const std::vector<float> stretched = RopeFrequencies(config);
    for (size_t i = 0; i < num_frequencies; ++i) {
      const float expected = plain[i] / stretched[i];
      if (!(std::fabs((*divisors)[i] - expected) <= 1e-4f * expected)) return unknown();
    }
    return Status::Ok();
  }

  Status ReadVocabSize(ModelConfig& config) const {
    const GgufTensor* const embedding = file_.Find("token_embd.weight");
    if (embedding == nullptr || embedding->shape.size() != 2) {
      return NotFound(file_.path(), ": tensor token_embd.weight: must be there, a matrix");
    }
    config.vocab_size = embedding->shape[0];
    int64_t said = config.vocab_size;
    if (Has("vocab_size")) PACE_RETURN_IF_ERROR(ReadCount("vocab_size", said));
    if (said != config.vocab_size) {
      return At("vocab_size", Concat(said),
                Concat("token_embd.weight has ", config.vocab_size, " rows"));
    }
    return Status::Ok();
  }

  Status ReadToken(std::string_view key, int64_t vocab_size, std::optional<TokenId>& out) const {
    const std::string full = Concat("tokenizer.ggml.", key);
    if (!file_.metadata().contains(full)) return Status::Ok();
    PACE_ASSIGN_OR_RETURN(const int64_t id, file_.Integer(full));
    if (id < 0 || id >= vocab_size) {
      return InvalidArgument(file_.path(), ": metadata ", full, " = ", id, ": must be in 0 .. ",
                             vocab_size - 1);
    }
    out = static_cast<TokenId>(id);
    return Status::Ok();
  }

  Status ReadTokens(ModelConfig& config) const {
    PACE_RETURN_IF_ERROR(ReadToken("bos_token_id", config.vocab_size, config.bos));
    PACE_RETURN_IF_ERROR(ReadToken("padding_token_id", config.vocab_size, config.pad));
    for (const std::string_view key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
      std::optional<TokenId> id;
      PACE_RETURN_IF_ERROR(ReadToken(key, config.vocab_size, id));
      const bool is_new =
          id && std::find(config.eos.begin(), config.eos.end(), *id) == config.eos.end();
      if (is_new) config.eos.push_back(*id);
    }
    return Status::Ok();
  }

  const GgufFile& file_;
  const std::string prefix_;
};

constexpr std::string_view kByteLevelDecoder =
    R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})";

// The kinds of tokens that matter here.
constexpr int64_t kUnknownToken = 2;
constexpr int64_t kControlToken = 3;
constexpr int64_t kUserToken = 4;

class TokenizerReader {
 public:
  explicit TokenizerReader(const GgufFile& file) : file_(file) {}

  Status Read(std::string_view model, TokenizerSpec& spec) {
    PACE_RETURN_IF_ERROR(ReadTokens(spec));
    PACE_RETURN_IF_ERROR(ReadId("bos_token_id", spec.bos));
    PACE_RETURN_IF_ERROR(ReadId("eos_token_id", spec.eos));
    PACE_RETURN_IF_ERROR(ReadId("padding_token_id", spec.pad));
    PACE_RETURN_IF_ERROR(RefuseIfOn("remove_extra_whitespaces"));
    PACE_RETURN_IF_ERROR(model == "gpt2" ? ReadByteLevel(spec) : ReadSentencePiece(spec));
    PACE_RETURN_IF_ERROR(ReadFlag("add_bos_token", spec.add_bos));
    PACE_RETURN_IF_ERROR(ReadFlag("add_eos_token", spec.add_eos));
    // Without the token there is nothing to add, whatever the flag says.
    spec.add_bos = spec.add_bos && spec.bos.has_value();
    spec.add_eos = spec.add_eos && spec.eos.has_value();
    if (file_.metadata().contains("tokenizer.chat_template")) {
      PACE_ASSIGN_OR_RETURN(spec.chat_template, file_.Text("tokenizer.chat_template"));
    }
    return Status::Ok();
  }

 private:
  const GgufValue* Find(std::string_view key) const {
    const auto found = file_.metadata().find(Concat("tokenizer.ggml.", key));
    return found == file_.metadata().end() ? nullptr : &found->second;
  }

  Status Wrong(std::string_view key, std::string_view rule) const {
    return InvalidArgument(file_.path(), ": metadata tokenizer.ggml.", key, ": ", rule);
  }

  // Null after an error, which names the key.
  Result<const GgufArray*> Array(std::string_view key, size_t size) const {
    const GgufValue* const value = Find(key);
    const auto* const array = value == nullptr ? nullptr : std::get_if<GgufArray>(value);
    if (array == nullptr) return Wrong(key, "must be there, an array");
    if (size > 0 && array->size() != size) {
      return Wrong(key, Concat("must have ", size, " items, as tokenizer.ggml.tokens"));
    }
    return array;
  }

  Status ReadFlag(std::string_view key, bool& out) const {
    const GgufValue* const value = Find(key);
    if (value == nullptr) return Status::Ok();
    const auto* const flag = std::get_if<bool>(value);
    if (flag == nullptr) return Wrong(key, "must be true or false");
    out = *flag;
    return Status::Ok();
  }

  Status RefuseIfOn(std::string_view key) const {
    bool on = false;
    PACE_RETURN_IF_ERROR(ReadFlag(key, on));
    return on ? Wrong(key, "is not supported (must be false)") : Status::Ok();
  }

  Status ReadId(std::string_view key, std::optional<TokenId>& out) const {
    if (Find(key) == nullptr) return Status::Ok();
    PACE_ASSIGN_OR_RETURN(const int64_t id, file_.Integer(Concat("tokenizer.ggml.", key)));
    if (id < 0 || id >= num_tokens_) {
      return Wrong(key, Concat("must be in 0 .. ", num_tokens_ - 1));
    }
    out = static_cast<TokenId>(id);
    return Status::Ok();
  }

  Status ReadTokens(TokenizerSpec& spec) {
    PACE_ASSIGN_OR_RETURN(const GgufArray* tokens, Array("tokens", 0));
    if (tokens->item_type != GgufType::kText) return Wrong("tokens", "must be texts");
    spec.tokens = tokens->texts;
    num_tokens_ = static_cast<int64_t>(spec.tokens.size());
    std::unordered_set<std::string_view> seen;
    for (size_t id = 0; id < spec.tokens.size(); ++id) {
      // llama.cpp's name for it.
      if (spec.tokens[id].empty()) spec.tokens[id] = Concat("[EMPTY_", id, "]");
      if (!seen.insert(spec.tokens[id]).second) {
        return Wrong("tokens",
                     Concat("'", Printable(spec.tokens[id]), "' occurs twice, again as ", id));
      }
    }
    if (Find("token_type") == nullptr) return Status::Ok();
    PACE_ASSIGN_OR_RETURN(const GgufArray* types, Array("token_type", spec.tokens.size()));
    if (types->integers.size() != spec.tokens.size())
      return Wrong("token_type", "must be integers");
    for (size_t id = 0; id < spec.tokens.size(); ++id) {
      const int64_t type = types->integers[id];
      const bool is_special = type == kUnknownToken || type == kControlToken;
      if (!is_special && type != kUserToken) continue;
      spec.added.push_back({.id = static_cast<TokenId>(id),
                            .content = spec.tokens[id],
                            .normalized = false,
                            .special = is_special});
    }
    return Status::Ok();
  }

  Status ReadByteLevel(TokenizerSpec& spec) const {
    if (Find("pre") == nullptr) {
      return Wrong("pre", Concat("must be there: it names how words are cut; give --tokenizer ",
                                 "FILE, the model's tokenizer.json"));
    }
    PACE_ASSIGN_OR_RETURN(const std::string pre, file_.Text("tokenizer.ggml.pre"));
    const GgufPreTokenizer* const known = FindGgufPreTokenizer(pre);
    if (known == nullptr) {
      return Wrong(Concat("pre = ", Printable(pre)),
                   Concat("is not known (", GgufPreTokenizerNames(),
                          "); give --tokenizer FILE, the model's tokenizer.json"));
    }
    spec.normalizer = known->normalizer;
    spec.pre_tokenizer = known->pre_tokenizer;
    spec.decoder = kByteLevelDecoder;
    spec.ignore_merges = known->ignore_merges;
    spec.add_bos = known->add_bos;
    PACE_ASSIGN_OR_RETURN(const GgufArray* merges, Array("merges", 0));
    if (merges->item_type != GgufType::kText) return Wrong("merges", "must be texts");
    for (const std::string& merge : merges->texts) {
      const size_t space = merge.find(' ', 1);
      if (space == std::string::npos) {
        return Wrong("merges", Concat("'", Printable(merge), "' must be two tokens"));
      }
      spec.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
    }
    return Status::Ok();
  }

  Status ReadSentencePiece(TokenizerSpec& spec) const {
    PACE_ASSIGN_OR_RETURN(const GgufArray* scores, Array("scores", spec.tokens.size()));
    std::vector<float> values(scores->reals.begin(), scores->reals.end());
    if (values.size() != spec.tokens.size()) return Wrong("scores", "must be real numbers");
    for (const float value : values) {
      if (std::isnan(value)) return Wrong("scores", "must be numbers");
    }
    spec.unk = 0;
    PACE_RETURN_IF_ERROR(ReadId("unknown_token_id", spec.unk));
    bool add_space = true;
    PACE_RETURN_IF_ERROR(ReadFlag("add_space_prefix", add_space));
    spec.add_bos = true;
    PutSentencePiece(SpaceMark::kLowLine, add_space, spec);
    spec.merges = MergesFromScores(spec.tokens, values);
    return Status::Ok();
  }

  const GgufFile& file_;
  int64_t num_tokens_ = 0;
};

}  // namespace

Result<ModelSource> OpenGguf(const std::string& path, bool own_tokenizer) {
  PACE_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(path));
  PACE_ASSIGN_OR_RETURN(ModelConfig config, GgufModelConfig(file));
  PACE_RETURN_IF_ERROR(CheckModelConfig(config).At(path));
  ModelSource source{.config = std::move(config), .texts = {}, .num_tensors = 0, .tensor = {}};
  if (!own_tokenizer) PACE_RETURN_IF_ERROR(ReadTokenizer(file, source));

  const auto open =
      std::make_shared<OpenFile>(OpenFile{.file = std::move(file), .tensors = {}, .importer = {}});
  for (const GgufTensor& tensor : open->file.tensors()) {
    // The config says what it says.
    if (tensor.name != kRopeFrequencies) open->tensors.push_back(&tensor);
  }
  PACE_ASSIGN_OR_RETURN(open->importer, GgufImporter::Create(open->file));
  source.num_tensors = static_cast<int64_t>(open->tensors.size());
  source.tensor = [open](int64_t index) {
    return open->importer->Import(*open->tensors[static_cast<size_t>(index)]);
  };
  return source;
}

Result<ModelConfig> GgufModelConfig(const GgufFile& file) {
  PACE_ASSIGN_OR_RETURN(const std::string architecture, file.Text("general.architecture"));
  ModelConfig config;
  if (architecture == "llama") {
    config.architecture = Architecture::kLlama;
  } else if (architecture == "qwen2") {
    config.architecture = Architecture::kQwen2;
    config.qkv_bias = true;
  } else if (architecture == "qwen3") {
    config.architecture = Architecture::kQwen3;
    config.qk_norm = true;
  } else {
    return InvalidArgument(file.path(),
                           ": metadata general.architecture = ", Printable(architecture),
                           ": must be llama, qwen2 or qwen3");
  }
  PACE_RETURN_IF_ERROR(ConfigReader(file, architecture).Read(config));
  config.tied = file.Find("output.weight") == nullptr;
  if (config.architecture != Architecture::kQwen2) {
    config.qkv_bias = file.Find("blk.0.attn_q.bias") != nullptr;
  }
  return config;
}

Result<std::optional<TokenizerSpec>> GgufTokenizer(const GgufFile& file) {
  const std::string key = "tokenizer.ggml.model";
  if (!file.metadata().contains(key)) return std::optional<TokenizerSpec>();
  PACE_ASSIGN_OR_RETURN(const std::string model, file.Text(key));
  if (model != "gpt2" && model != "llama") {
    return InvalidArgument(file.path(), ": metadata ", key, " = ", Printable(model),
                           ": must be gpt2 or llama; give --tokenizer FILE, the model's ",
                           "tokenizer.json");
  }
  TokenizerSpec spec;
  PACE_RETURN_IF_ERROR(TokenizerReader(file).Read(model, spec));
  return std::optional<TokenizerSpec>(std::move(spec));
}

}  // namespace pace
