#include "convert/import_llama2c.h"

#include <cmath>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "convert/score_merges.h"
#include "convert/sentencepiece_spec.h"
#include "core/printable.h"

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

}  // namespace pace
