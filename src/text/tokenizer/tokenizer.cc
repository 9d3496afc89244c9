#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/file.h"
#include "core/printable.h"
#include "core/token_id.h"
#include "core/utf8.h"
#include "text/characters.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/token_decoder.h"
#include "text/tokenizer/tokenizer_file.h"
#include "text/tokenizer/word_model.h"

namespace pace {
namespace {

// Where the space at the end of the text begins.
size_t BeginOfTrailingSpace(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t last = BeginOfLastCharacter(text.substr(0, begin));
    if (!IsWhiteSpace(ReadCodePoint(text, last).code)) break;
    begin = last;
  }
  return begin;
}

size_t LengthOfLeadingSpace(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = ReadCodePoint(text, at);
    if (!IsWhiteSpace(point.code)) break;
    at += point.num_bytes;
  }
  return at;
}

bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0) {
    const size_t last = BeginOfLastCharacter(text.substr(0, begin));
    if (IsWordCharacter(ReadCodePoint(text, last).code)) return false;
  }
  return end == text.size() || !IsWordCharacter(ReadCodePoint(text, end).code);
}

// A stretch of text, or one added token.
struct TextSection {
  std::string_view text;
  std::optional<TokenId> token;
};

// Finds the tokens that are taken out of a text before anything else: <|im_start|>, <tool_call> and
// the like. From left to right, the longest at each place. Tokens marked `normalized` are looked
// for in the normalised text between the others.
class AddedTokens {
 public:
  // `tokens` as they are to be found: content normalised where that applies.
  explicit AddedTokens(std::vector<AddedToken> tokens = {});

  // The sections in order, the added tokens among them; empty text is left out.
  void Split(std::string_view text, std::vector<TextSection>& out) const;

 private:
  // The token that begins exactly here, the longest; none if there is none.
  const AddedToken* LongestAt(std::string_view text, size_t at) const;
  size_t FindCandidate(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;                        // the longest first
  std::array<std::vector<uint32_t>, 256> by_first_byte_;  // in that order
  std::string first_bytes_;
};

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.content.size() != b.content.size() ? a.content.size() > b.content.size()
                                                : a.content < b.content;
  });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const char first = tokens_[i].content.front();
    std::vector<uint32_t>& row = by_first_byte_[static_cast<unsigned char>(first)];
    if (row.empty()) first_bytes_ += first;
    row.push_back(static_cast<uint32_t>(i));
  }
}

size_t AddedTokens::FindCandidate(std::string_view text, size_t at) const {
  // One first byte, '<' as a rule, is worth the library's fast search.
  if (first_bytes_.size() == 1) return text.find(first_bytes_.front(), at);
  while (at < text.size() && by_first_byte_[static_cast<unsigned char>(text[at])].empty()) ++at;
  return at < text.size() ? at : std::string_view::npos;
}

const AddedToken* AddedTokens::LongestAt(std::string_view text, size_t at) const {
  for (const uint32_t index : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    if (text.substr(at).starts_with(tokens_[index].content)) return &tokens_[index];
  }
  return nullptr;
}

void AddedTokens::Split(std::string_view text, std::vector<TextSection>& out) const {
  size_t done = 0;
  size_t at = tokens_.empty() ? std::string_view::npos : FindCandidate(text, 0);
  while (at != std::string_view::npos) {
    const AddedToken* token = LongestAt(text, at);
    if (token == nullptr) {
      at = FindCandidate(text, at + 1);
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    at = FindCandidate(text, end);
    if (token->single_word && !StandsAlone(text, begin, end)) continue;
    if (token->lstrip) begin = std::max(BeginOfTrailingSpace(text.substr(0, begin)), done);
    if (token->rstrip) end += LengthOfLeadingSpace(text.substr(end));
    if (done < begin) out.push_back({text.substr(done, begin - done), std::nullopt});
    out.push_back({{}, token->id});
    done = end;
  }
  if (done < text.size()) out.push_back({text.substr(done), std::nullopt});
}

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

std::optional<std::string> StreamDecoder::Feed(TokenId id) {
  tokenizer_.Feed(id, skip_special_, progress_, pending_);
  // U+FFFD at the end may be a character whose last bytes are still to come.
  if (pending_.empty() || EndsInReplacement(pending_)) return std::nullopt;
  return TakePending();
}

std::string StreamDecoder::Finish() {
  tokenizer_.Finish(progress_, pending_);
  progress_ = {};
  return TakePending();
}

std::string StreamDecoder::TakePending() {
  const std::string bytes = std::exchange(pending_, {});
  return ReplaceIllFormed(bytes);
}

}  // namespace pace
