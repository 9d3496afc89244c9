// The tokenizer inside a GGUF file.
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "convert/gguf_pre_tokenizers.h"
#include "convert/import_gguf.h"
#include "convert/score_merges.h"
#include "convert/sentencepiece_spec.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr std::string_view kByteLevelDecoder =
    R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})";

// The kinds of tokens that matter here.
constexpr int64_t kUnknown = 2;
constexpr int64_t kControl = 3;
constexpr int64_t kUserDefined = 4;

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
      const bool is_special = type == kUnknown || type == kControl;
      if (!is_special && type != kUserDefined) continue;
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
