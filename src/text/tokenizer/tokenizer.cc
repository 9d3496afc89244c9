#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "core/file.h"
#include "core/printable.h"
#include "core/utf8.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/tokenizer_file.h"
#include "text/tokenizer/word_model.h"

namespace pace {
namespace {

// The largest of the families' files is 17 MB.
constexpr size_t kMaxFileBytes = size_t{256} << 20;

}  // namespace

struct Tokenizer::State {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<WordModel> model;
  AddedTokens literal_tokens;
  AddedTokens normalized_tokens;
  std::unordered_map<std::string, TokenId> added_by_content;
  std::vector<TokenId> prefix;
  std::vector<TokenId> suffix;
  std::optional<TokenDecoder> decoder;

  Status Build(const TokenizerFile& file);
  Status BuildAdded(const TokenizerFile& file);
  Status BuildDecoder(const TokenizerFile& file);
  Status ReadPostProcessor(const TokenizerComponent& component);
  Status EncodeText(std::string_view text, bool at_start, TextPieces& pieces,
                    std::vector<TokenId>& out) const;
  Status EncodeSections(std::string_view text, std::vector<TokenId>& out) const;
};

Status Tokenizer::State::Build(const TokenizerFile& file) {
  if (file.normalizer.has_value()) {
    PACE_ASSIGN_OR_RETURN(normalizer, Normalizer::Build(*file.normalizer));
  }
  if (file.pre_tokenizer.has_value()) {
    PACE_ASSIGN_OR_RETURN(pre_tokenizer, PreTokenizer::Build(*file.pre_tokenizer));
  }
  PACE_ASSIGN_OR_RETURN(model, WordModel::Build(file, pre_tokenizer.byte_level()));
  PACE_RETURN_IF_ERROR(BuildAdded(file));
  PACE_RETURN_IF_ERROR(BuildDecoder(file));
  if (file.post_processor.has_value()) return ReadPostProcessor(*file.post_processor);
  return Status::Ok();
}

Status Tokenizer::State::BuildAdded(const TokenizerFile& file) {
  std::vector<AddedToken> literal;
  std::vector<AddedToken> normalized;
  const std::vector<std::string>& vocab = model->tokens();
  for (size_t i = 0; i < file.added_tokens.size(); ++i) {
    AddedToken token = file.added_tokens[i];
    const std::optional<TokenId> in_vocab = model->Find(token.content);
    const auto at = static_cast<size_t>(token.id);
    const bool taken = at < vocab.size() && !vocab[at].empty() && vocab[at] != token.content;
    const bool moved = in_vocab.has_value() && *in_vocab != token.id;
    const auto [entry, is_new] = added_by_content.emplace(token.content, token.id);
    if (taken || moved || (!is_new && entry->second != token.id)) {
      return InvalidArgument("added_tokens[", i, "].id = ", token.id, ": '",
                             Printable(token.content), "' and this id must belong together");
    }
    if (at > vocab.size() + file.added_tokens.size() + 65536) {
      return InvalidArgument("added_tokens[", i, "].id = ", token.id,
                             ": too far behind the vocabulary");
    }
    if (token.normalized) {
      PACE_ASSIGN_OR_RETURN(token.content, normalizer.Apply(token.content));
      normalized.push_back(std::move(token));
    } else {
      literal.push_back(std::move(token));
    }
  }
  literal_tokens = AddedTokens(std::move(literal));
  normalized_tokens = AddedTokens(std::move(normalized));
  return Status::Ok();
}

Status Tokenizer::State::BuildDecoder(const TokenizerFile& file) {
  PACE_ASSIGN_OR_RETURN(decoder, TokenDecoder::Build(file.decoder));
  for (const auto& [token, id] : file.vocab) PACE_RETURN_IF_ERROR(decoder->Add(id, token, false));
  // A token that is looked for in normalised text also decodes to such text.
  for (const AddedToken& token : file.added_tokens) {
    PACE_ASSIGN_OR_RETURN(const std::string content, token.normalized
                                                         ? normalizer.Apply(token.content)
                                                         : Result<std::string>(token.content));
    PACE_RETURN_IF_ERROR(decoder->Add(token.id, content, token.special));
  }
  return Status::Ok();
}

Status Tokenizer::State::ReadPostProcessor(const TokenizerComponent& component) {
  if (component.type == "ByteLevel") return Status::Ok();  // it moves offsets alone
  if (component.type == "Sequence") {
    for (const TokenizerComponent& part : component.parts) {
      PACE_RETURN_IF_ERROR(ReadPostProcessor(part));
    }
    return Status::Ok();
  }
  if (component.type != "TemplateProcessing") {
    return InvalidArgument(component.where, ".type = ", component.type,
                           ": is not supported as a post-processor");
  }
  const auto add = [&](const std::vector<std::string>& names, std::vector<TokenId>& out) {
    for (const std::string& name : names) {
      const auto entry =
          std::find_if(component.special_tokens.begin(), component.special_tokens.end(),
                       [&](const auto& token) { return token.first == name; });
      if (entry == component.special_tokens.end()) {
        return InvalidArgument(component.where, ".single: '", Printable(name),
                               "' must be in special_tokens");
      }
      out.insert(out.end(), entry->second.begin(), entry->second.end());
    }
    return Status::Ok();
  };
  // Steps of a sequence wrap what the earlier ones made.
  std::vector<TokenId> before;
  PACE_RETURN_IF_ERROR(add(component.prefix, before));
  prefix.insert(prefix.begin(), before.begin(), before.end());
  return add(component.suffix, suffix);
}

Status Tokenizer::State::EncodeText(std::string_view text, bool at_start, TextPieces& pieces,
                                    std::vector<TokenId>& out) const {
  PACE_RETURN_IF_ERROR(pre_tokenizer.Split(text, at_start, pieces));
  for (const std::string_view piece : pieces.views) PACE_RETURN_IF_ERROR(model->Encode(piece, out));
  return Status::Ok();
}

Status Tokenizer::State::EncodeSections(std::string_view text, std::vector<TokenId>& out) const {
  std::vector<TextSection> sections;
  std::vector<TextSection> inner;
  TextPieces pieces;
  literal_tokens.Split(text, sections);
  for (const TextSection& section : sections) {
    if (section.token.has_value()) {
      out.push_back(*section.token);
      continue;
    }
    std::string normalized;
    std::string_view plain = section.text;
    if (!normalizer.Keeps(plain)) {
      PACE_ASSIGN_OR_RETURN(normalized, normalizer.Apply(plain));
      plain = normalized;
    }
    inner.clear();
    normalized_tokens.Split(plain, inner);
    for (const TextSection& part : inner) {
      if (part.token.has_value()) {
        out.push_back(*part.token);
        continue;
      }
      const bool at_start = section.text.data() == text.data() && part.text.data() == plain.data();
      PACE_RETURN_IF_ERROR(EncodeText(part.text, at_start, pieces, out));
    }
  }
  return Status::Ok();
}

Result<Tokenizer> Tokenizer::Load(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "tokenizer.json").string();
  PACE_ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxFileBytes));
  Result<Tokenizer> tokenizer = Parse(json);
  if (!tokenizer.ok()) return tokenizer.status().At(path);
  return tokenizer;
}

Result<Tokenizer> Tokenizer::Parse(std::string_view json) {
  PACE_ASSIGN_OR_RETURN(const TokenizerFile file, ParseTokenizerFile(json));
  auto state = std::make_shared<State>();
  PACE_RETURN_IF_ERROR(state->Build(file));
  return Tokenizer(std::move(state));
}

Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                               bool add_special_tokens) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 4);
  if (add_special_tokens) ids = state_->prefix;
  PACE_RETURN_IF_ERROR(IsWellFormed(text) ? state_->EncodeSections(text, ids)
                                          : state_->EncodeSections(ReplaceIllFormed(text), ids));
  if (add_special_tokens) ids.insert(ids.end(), state_->suffix.begin(), state_->suffix.end());
  return ids;
}

void Tokenizer::Feed(TokenId id, bool skip_special, DecodeProgress& progress,
                     std::string& out) const {
  state_->decoder->Feed(id, skip_special, progress, out);
}

bool Tokenizer::AppendBytes(TokenId id, bool skip_special, bool is_first, std::string& out) const {
  return state_->decoder->AppendBytes(id, skip_special, is_first, out);
}

void Tokenizer::Finish(DecodeProgress& progress, std::string& out) const {
  state_->decoder->Finish(progress, out);
}

std::string Tokenizer::Decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  DecodeProgress progress;
  for (const TokenId id : ids) Feed(id, skip_special, progress, bytes);
  Finish(progress, bytes);
  return IsWellFormed(bytes) ? bytes : ReplaceIllFormed(bytes);
}

std::optional<TokenId> Tokenizer::Find(std::string_view token) const {
  const auto added = state_->added_by_content.find(std::string(token));
  if (added != state_->added_by_content.end()) return added->second;
  return state_->model->Find(token);
}

bool Tokenizer::IsSpecial(TokenId id) const {
  return state_->decoder->IsSpecial(id);
}

int64_t Tokenizer::num_ids() const {
  return state_->decoder->num_ids();
}

}  // namespace pace
