#include "convert/export_gguf.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "convert/import_gguf.h"
#include "convert/tokenizer_spec.h"
#include "core/printable.h"
#include "formats/gguf_import.h"
#include "formats/rope_rows.h"
#include "model/weight_set.h"
#include "text/python_text.h"
#include "text/tokenizer/tokenizer.h"
#include "text/value.h"

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

enum TokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

const std::string* TextOf(const std::vector<FolderText>& texts, std::string_view name) {
  const auto found = std::find_if(texts.begin(), texts.end(),
                                  [name](const FolderText& text) { return text.name == name; });
  return found == texts.end() ? nullptr : &found->text;
}

bool IsByteToken(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with(">");
}

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
};

// One entry per row of the embedding; rows without a token are named as
// llama.cpp's converter names them.
Result<Vocabulary> VocabularyOf(const TokenizerFile& file, int64_t vocab_size) {
  Vocabulary out;
  const auto size = static_cast<size_t>(vocab_size);
  out.tokens.resize(size);
  out.types.resize(size, kUnused);
  const auto put = [&](TokenId id, const std::string& token, int32_t type) {
    const auto at = static_cast<size_t>(id);
    if (at >= size) {
      return InvalidArgument("tokenizer.json: token '", Printable(token), "' = ", id,
                             ": the model has ", vocab_size, " rows");
    }
    out.tokens[at] = token;
    out.types[at] = type;
    return Status::Ok();
  };
  for (const auto& [token, id] : file.vocab) {
    const bool is_byte = file.byte_fallback && IsByteToken(token);
    PACE_RETURN_IF_ERROR(put(id, token, is_byte ? kByte : kNormal));
  }
  for (const AddedToken& token : file.added_tokens) {
    const bool is_unk = file.unk_token.has_value() && *file.unk_token == token.content;
    const int32_t special = is_unk ? kUnknown : kControl;
    PACE_RETURN_IF_ERROR(put(token.id, token.content, token.special ? special : kUserDefined));
  }
  for (size_t id = 0; id < size; ++id) {
    if (out.tokens[id].empty()) out.tokens[id] = Concat("[PAD", id, "]");
  }
  return out;
}

// Scores under which joining the best pair is following the merges: the earlier
// a token is made, the higher. Refused where the merges say more than that.
Result<std::vector<float>> ScoresOf(const TokenizerFile& file, const Vocabulary& vocabulary) {
  std::map<std::string, size_t> rank_of;  // of tokens that merges make
  std::string last;
  for (const auto& [left, right] : file.merges) {
    std::string made = left + right;
    if (made == last) continue;
    if (!rank_of.emplace(made, rank_of.size()).second) {
      return InvalidArgument("tokenizer.json: merges make '", Printable(made),
                             "' at two ranks: GGUF has one score for it");
    }
    last = std::move(made);
  }
  std::vector<float> scores;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const auto rank = rank_of.find(vocabulary.tokens[id]);
    const bool is_plain = vocabulary.types[id] == kNormal;
    const size_t below = rank == rank_of.end() ? rank_of.size() + id : rank->second;
    scores.push_back(is_plain ? -static_cast<float>(below) : 0.0f);
  }
  const auto merges = MergesFromScores(vocabulary.tokens, scores);
  using MergeSet = std::set<std::pair<std::string, std::string>>;
  if (MergeSet(merges.begin(), merges.end()) != MergeSet(file.merges.begin(), file.merges.end())) {
    return InvalidArgument("tokenizer.json: its merges are not all the ways to make its tokens: ",
                           "GGUF cannot say which");
  }
  return scores;
}

Status PutByteLevel(const TokenizerFile& file, const Vocabulary& vocabulary, GgufWriter& writer) {
  const GgufPreTokenizer* const pre = GgufPreTokenizerOf(file);
  if (pre == nullptr) {
    return InvalidArgument("tokenizer.json: GGUF has no name for its pre-tokenizer (it has ",
                           GgufPreTokenizerNames(), "); --no-tokenizer writes the model alone");
  }
  writer.PutText("tokenizer.ggml.model", "gpt2");
  writer.PutText("tokenizer.ggml.pre", pre->name);
  writer.PutTexts("tokenizer.ggml.tokens", vocabulary.tokens);
  writer.PutI32s("tokenizer.ggml.token_type", vocabulary.types);
  std::vector<std::string> merges;
  for (const auto& [left, right] : file.merges) merges.push_back(Concat(left, " ", right));
  writer.PutTexts("tokenizer.ggml.merges", merges);
  return Status::Ok();
}

Status PutSentencePieceKeys(const TokenizerFile& file, Vocabulary vocabulary, GgufWriter& writer) {
  for (const SpaceMark mark : {SpaceMark::kLowLine, SpaceMark::kSpace}) {
    for (const bool add_space : {true, false}) {
      TokenizerSpec spec;
      PutSentencePiece(mark, add_space, spec);
      const TokenizerFile shape = FileOfComponents(spec.normalizer, "null", spec.decoder);
      if (!SameComponent(shape.normalizer, file.normalizer) ||
          !SameComponent(shape.decoder, file.decoder) || file.pre_tokenizer.has_value()) {
        continue;
      }
      PACE_ASSIGN_OR_RETURN(const std::vector<float> scores, ScoresOf(file, vocabulary));
      for (std::string& token : vocabulary.tokens) {
        for (size_t at = token.find(' '); at != std::string::npos; at = token.find(' ', at)) {
          token.replace(at, 1, kLowLineMark);
        }
      }
      writer.PutText("tokenizer.ggml.model", "llama");
      writer.PutText("tokenizer.ggml.pre", "default");
      writer.PutTexts("tokenizer.ggml.tokens", vocabulary.tokens);
      writer.PutF32s("tokenizer.ggml.scores", scores);
      writer.PutI32s("tokenizer.ggml.token_type", vocabulary.types);
      writer.PutBool("tokenizer.ggml.add_space_prefix", add_space);
      return Status::Ok();
    }
  }
  return InvalidArgument("tokenizer.json: its normaliser and decoder are none that GGUF knows ",
                         "beside byte_fallback; --no-tokenizer writes the model alone");
}

// The chat template as text; empty if there is none.
Result<std::string> TemplateSource(const std::vector<FolderText>& texts) {
  if (const std::string* const own = TextOf(texts, "chat_template.jinja")) return *own;
  const std::string* const config = TextOf(texts, "tokenizer_config.json");
  if (config == nullptr) return std::string();
  const Result<Value> value = ParsePythonJson(*config);
  if (!value.ok()) return value.status().At("tokenizer_config.json");
  const Value* const source = value->is_dict() ? value->dict().Find("chat_template") : nullptr;
  return source != nullptr && source->is_text() ? source->text() : std::string();
}

Status PutSpecialTokens(const Tokenizer& tokenizer, const ModelConfig& config, GgufWriter& writer) {
  PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> around,
                        tokenizer.Encode("", /*add_special_tokens=*/true));
  std::optional<TokenId> bos = config.bos;
  const auto is_end = [&](TokenId id) {
    return std::find(config.eos.begin(), config.eos.end(), id) != config.eos.end();
  };
  const bool add_eos = !around.empty() && is_end(around.back()) && around.back() != bos;
  const size_t num_begin = around.size() - (add_eos ? 1 : 0);
  if (num_begin == 1 && !bos) bos = around.front();
  if (num_begin > 1 || (num_begin == 1 && around.front() != bos)) {
    return InvalidArgument("tokenizer.json: texts get ", around.size(),
                           " tokens around them: GGUF knows one at the beginning and one at the ",
                           "end; --no-tokenizer writes the model alone");
  }
  constexpr std::string_view kEnds[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
  if (config.eos.size() > std::size(kEnds)) {
    return InvalidArgument("eos_token_id: ", config.eos.size(), " tokens: GGUF has room for ",
                           std::size(kEnds), "; --no-tokenizer writes the model alone");
  }
  const auto put = [&](std::string_view key, TokenId id) {
    writer.PutU32(Concat("tokenizer.ggml.", key), static_cast<uint32_t>(id));
  };
  if (bos) put("bos_token_id", *bos);
  for (size_t i = 0; i < config.eos.size(); ++i) put(kEnds[i], config.eos[i]);
  if (config.pad) put("padding_token_id", *config.pad);
  writer.PutBool("tokenizer.ggml.add_bos_token", num_begin == 1);
  writer.PutBool("tokenizer.ggml.add_eos_token", add_eos);
  return Status::Ok();
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

Status PutGgufTokenizer(const std::vector<FolderText>& texts, const ModelConfig& config,
                        GgufWriter& writer) {
  const std::string* const json = TextOf(texts, "tokenizer.json");
  if (json == nullptr) return Status::Ok();
  const Result<Tokenizer> tokenizer = Tokenizer::Parse(*json);
  if (!tokenizer.ok()) return tokenizer.status().At("tokenizer.json");
  const Result<TokenizerFile> file = ParseTokenizerFile(*json);
  if (!file.ok()) return file.status().At("tokenizer.json");
  if (file->model != TokenizerFile::Model::kBpe) {
    return InvalidArgument("tokenizer.json: model.type = WordLevel: GGUF has none; ",
                           "--no-tokenizer writes the model alone");
  }
  PACE_ASSIGN_OR_RETURN(Vocabulary vocabulary, VocabularyOf(*file, config.vocab_size));
  PACE_RETURN_IF_ERROR(file->byte_fallback
                           ? PutSentencePieceKeys(*file, std::move(vocabulary), writer)
                           : PutByteLevel(*file, vocabulary, writer));
  PACE_RETURN_IF_ERROR(PutSpecialTokens(*tokenizer, config, writer));
  PACE_ASSIGN_OR_RETURN(const std::string source, TemplateSource(texts));
  if (!source.empty()) writer.PutText("tokenizer.chat_template", source);
  return Status::Ok();
}

}  // namespace pace
