#include "text/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "core/printable.h"
#include "text/added_tokens.h"
#include "text/byte_alphabet.h"
#include "text/characters.h"
#include "text/pre_tokenizer.h"
#include "text/read_file.h"
#include "text/tokenizer_file.h"
#include "text/word_model.h"

namespace pace {
namespace {

// The largest of the families' files is 17 MB.
constexpr size_t kMaxFileBytes = size_t{256} << 20;

Result<std::vector<NormalForm>> NormalFormsOf(const TokenizerComponent& component) {
  std::vector<NormalForm> forms;
  if (component.type == "Sequence") {
    for (const TokenizerComponent& part : component.parts) {
      const Result<std::vector<NormalForm>> more = NormalFormsOf(part);
      if (!more.ok()) return more.status();
      forms.insert(forms.end(), more->begin(), more->end());
    }
  } else if (component.type == "NFC") {
    forms.push_back(NormalForm::kNfc);
  } else if (component.type == "NFD") {
    forms.push_back(NormalForm::kNfd);
  } else if (component.type == "NFKC") {
    forms.push_back(NormalForm::kNfkc);
  } else if (component.type == "NFKD") {
    forms.push_back(NormalForm::kNfkd);
  } else {
    return InvalidArgument(component.where, ".type = ", component.type,
                           ": is not supported as a normaliser");
  }
  return forms;
}

// Whether tokens are written in the byte alphabet, by the decoder.
Status ReadDecoder(const TokenizerComponent& component, bool& byte_level) {
  if (component.type == "Sequence") {
    for (const TokenizerComponent& part : component.parts) {
      PACE_RETURN_IF_ERROR(ReadDecoder(part, byte_level));
    }
    return Status::Ok();
  }
  if (component.type == "ByteLevel") {
    byte_level = true;
    return Status::Ok();
  }
  if (component.type == "Fuse") return Status::Ok();
  return InvalidArgument(component.where, ".type = ", component.type,
                         ": is not supported as a decoder");
}

}  // namespace

struct Tokenizer::State {
  std::vector<NormalForm> normal_forms;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<WordModel> model;
  AddedTokens literal_tokens;
  AddedTokens normalized_tokens;
  std::unordered_map<std::string, TokenId> added_by_content;
  std::vector<TokenId> prefix;
  std::vector<TokenId> suffix;
  // By id: what a token decodes to, and whether there is such a token.
  std::vector<std::string> bytes;
  std::vector<bool> known;
  std::vector<bool> special;
  bool space_between = false;

  Status Build(const TokenizerFile& file);
  Status BuildAdded(const TokenizerFile& file);
  void BuildDecode(const TokenizerFile& file, bool byte_level);
  Status ReadPostProcessor(const TokenizerComponent& component);
  std::string NormalizeAll(std::string_view text) const;
  Status EncodeText(std::string_view text, TextPieces& pieces, std::vector<TokenId>& out) const;
  Status EncodeSections(std::string_view text, std::vector<TokenId>& out) const;
};

Status Tokenizer::State::Build(const TokenizerFile& file) {
  if (file.normalizer.has_value()) {
    Result<std::vector<NormalForm>> forms = NormalFormsOf(*file.normalizer);
    if (!forms.ok()) return forms.status();
    normal_forms = std::move(forms).value();
  }
  if (file.pre_tokenizer.has_value()) {
    Result<PreTokenizer> built = PreTokenizer::Build(*file.pre_tokenizer);
    if (!built.ok()) return built.status();
    pre_tokenizer = std::move(built).value();
  }
  Result<std::unique_ptr<WordModel>> words = WordModel::Build(file, pre_tokenizer.byte_level());
  if (!words.ok()) return words.status();
  model = std::move(words).value();
  bool byte_level = false;
  if (file.decoder.has_value()) PACE_RETURN_IF_ERROR(ReadDecoder(*file.decoder, byte_level));
  space_between = !file.decoder.has_value();
  PACE_RETURN_IF_ERROR(BuildAdded(file));
  BuildDecode(file, byte_level);
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
      token.content = NormalizeAll(token.content);
      normalized.push_back(std::move(token));
    } else {
      literal.push_back(std::move(token));
    }
  }
  literal_tokens = AddedTokens(std::move(literal));
  normalized_tokens = AddedTokens(std::move(normalized));
  return Status::Ok();
}

void Tokenizer::State::BuildDecode(const TokenizerFile& file, bool byte_level) {
  size_t size = model->tokens().size();
  for (const AddedToken& token : file.added_tokens) {
    size = std::max(size, static_cast<size_t>(token.id) + 1);
  }
  bytes.resize(size);
  known.resize(size);
  special.resize(size);
  const auto put = [&](TokenId id, const std::string& token) {
    const auto at = static_cast<size_t>(id);
    known[at] = true;
    bytes[at] = byte_level ? BytesOfToken(token).value_or(token) : token;
  };
  for (const auto& [token, id] : file.vocab) put(id, token);
  for (const AddedToken& token : file.added_tokens) {
    put(token.id, token.content);
    special[static_cast<size_t>(token.id)] = token.special;
  }
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

std::string Tokenizer::State::NormalizeAll(std::string_view text) const {
  std::string out(text);
  for (const NormalForm form : normal_forms) out = Normalize(out, form);
  return out;
}

Status Tokenizer::State::EncodeText(std::string_view text, TextPieces& pieces,
                                    std::vector<TokenId>& out) const {
  PACE_RETURN_IF_ERROR(pre_tokenizer.Split(text, pieces));
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
    const bool only_nfc = normal_forms.size() == 1 && normal_forms[0] == NormalForm::kNfc;
    std::string normalized;
    std::string_view plain = section.text;
    if (!normal_forms.empty() && !(only_nfc && IsPlainlyNfc(plain))) {
      normalized = NormalizeAll(plain);
      plain = normalized;
    }
    inner.clear();
    normalized_tokens.Split(plain, inner);
    for (const TextSection& part : inner) {
      if (part.token.has_value()) {
        out.push_back(*part.token);
      } else {
        PACE_RETURN_IF_ERROR(EncodeText(part.text, pieces, out));
      }
    }
  }
  return Status::Ok();
}

Result<Tokenizer> Tokenizer::Load(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "tokenizer.json").string();
  const Result<std::string> json = ReadFile(path, kMaxFileBytes);
  if (!json.ok()) return json.status();
  Result<Tokenizer> tokenizer = Parse(*json);
  if (!tokenizer.ok()) return tokenizer.status().At(path);
  return tokenizer;
}

Result<Tokenizer> Tokenizer::Parse(std::string_view json) {
  const Result<TokenizerFile> file = ParseTokenizerFile(json);
  if (!file.ok()) return file.status();
  auto state = std::make_shared<State>();
  PACE_RETURN_IF_ERROR(state->Build(*file));
  return Tokenizer(std::move(state));
}

Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                               bool add_special_tokens) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 4);
  if (add_special_tokens) ids = state_->prefix;
  const Status status = IsWellFormed(text) ? state_->EncodeSections(text, ids)
                                           : state_->EncodeSections(ReplaceIllFormed(text), ids);
  if (!status.ok()) return status;
  if (add_special_tokens) ids.insert(ids.end(), state_->suffix.begin(), state_->suffix.end());
  return ids;
}

bool Tokenizer::AppendBytes(TokenId id, bool skip_special, bool is_first, std::string& out) const {
  const auto at = static_cast<size_t>(id);
  if (id < 0 || at >= state_->bytes.size() || !state_->known[at]) return false;
  if (skip_special && state_->special[at]) return false;
  if (state_->space_between && !is_first) out += ' ';
  out += state_->bytes[at];
  return true;
}

std::string Tokenizer::Decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  bool is_first = true;
  for (const TokenId id : ids) {
    if (AppendBytes(id, skip_special, is_first, bytes)) is_first = false;
  }
  return IsWellFormed(bytes) ? bytes : ReplaceIllFormed(bytes);
}

std::optional<TokenId> Tokenizer::Find(std::string_view token) const {
  const auto added = state_->added_by_content.find(std::string(token));
  if (added != state_->added_by_content.end()) return added->second;
  return state_->model->Find(token);
}

bool Tokenizer::IsSpecial(TokenId id) const {
  const auto at = static_cast<size_t>(id);
  return id >= 0 && at < state_->special.size() && state_->special[at];
}

int64_t Tokenizer::num_ids() const {
  return static_cast<int64_t>(state_->bytes.size());
}

}  // namespace pace
