#include "text/tokenizer/token_decoder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/printable.h"
#include "core/utf8.h"

namespace pace {
namespace {

// The byte in "<0x0A>", as the `tokenizers` library reads it: a sign may stand
// for the first digit.
std::optional<char> ByteIn(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]);
  const int low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

std::string ReplaceAll(std::string_view text, std::string_view word, std::string_view by) {
  std::string out;
  size_t done = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, done)) {
    out.append(text.substr(done, at - done)).append(by);
    done = at + word.size();
  }
  return out.append(text.substr(done));
}

// Bytes that print in Latin-1 stand for themselves; the others take U+0100 and
// up, in order.
constexpr bool StandsForItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr uint32_t kNumCharacters = 0x100 + 68;

struct Alphabet {
  std::array<uint32_t, 256> character_of = {};
  std::array<int16_t, kNumCharacters> byte_of = {};  // negative: not in the alphabet

  constexpr Alphabet() {
    for (int16_t& byte : byte_of) byte = -1;
    uint32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      character_of[byte] = StandsForItself(byte) ? byte : next++;
      byte_of[character_of[byte]] = static_cast<int16_t>(byte);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

Result<TokenDecoder> TokenDecoder::Build(const std::optional<TokenizerComponent>& component) {
  TokenDecoder built;
  built.space_between_ = !component.has_value();
  Stage stage = Stage::kTokens;
  if (component.has_value()) PACE_RETURN_IF_ERROR(built.AddStep(*component, stage));
  return built;
}

Status TokenDecoder::AddStep(const TokenizerComponent& component, Stage& stage) {
  if (component.type == "Sequence") {
    for (const TokenizerComponent& part : component.parts) {
      PACE_RETURN_IF_ERROR(AddStep(part, stage));
    }
    return Status::Ok();
  }
  const auto out_of_order = [&](std::string_view rule) {
    return InvalidArgument(component.where, ".type = ", component.type, ": ", rule);
  };
  if (component.type == "Replace" || component.type == "Metaspace" ||
      component.type == "ByteLevel") {
    if (stage != Stage::kTokens) return out_of_order("must come before ByteFallback and Fuse");
    if (component.type == "ByteLevel") stage = Stage::kFused;
    return AddTokenStep(component);
  }
  if (component.type == "ByteFallback") {
    if (stage != Stage::kTokens) return out_of_order("must come before Fuse and ByteLevel, once");
    if (drops_first_) return out_of_order("is not supported behind Metaspace");
    stage = Stage::kBytes;
    byte_fallback_ = true;
    return Status::Ok();
  }
  if (component.type == "Fuse") {
    stage = std::max(stage, Stage::kFused);
    return Status::Ok();
  }
  if (component.type == "Strip") {
    if (stage != Stage::kFused) return out_of_order("is supported once, behind Fuse");
    stage = Stage::kStripped;
    return AddStrip(component);
  }
  return InvalidArgument(component.where, ".type = ", Printable(component.type),
                         ": is not supported as a decoder");
}

Status TokenDecoder::AddTokenStep(const TokenizerComponent& component) {
  if (component.type == "ByteLevel") {
    steps_.emplace_back(ByteAlphabet{});
  } else if (component.type == "Metaspace") {
    const bool drops = component.prepend_scheme != "never";
    steps_.emplace_back(Metaspace{component.replacement, drops});
    drops_first_ = drops_first_ || drops;
  } else {
    PACE_ASSIGN_OR_RETURN(TextReplacement replacement, TextReplacement::Build(component));
    steps_.emplace_back(std::move(replacement));
  }
  return Status::Ok();
}

Status TokenDecoder::AddStrip(const TokenizerComponent& component) {
  if (!component.content.has_value() || CountCodePoints(*component.content) != 1) {
    return InvalidArgument(component.where, ".content: must be one character");
  }
  if (component.stop != 0) {
    return InvalidArgument(component.where, ".stop = ", component.stop,
                           ": is not supported (must be 0)");
  }
  strip_ = *component.content;
  max_stripped_ = component.start;
  return Status::Ok();
}

Result<std::string> TokenDecoder::TextOf(std::string_view token, bool is_first) const {
  std::string text(token);
  for (const Step& step : steps_) {
    if (const auto* space = std::get_if<Metaspace>(&step)) {
      const bool drops = is_first && space->drops_first;
      text = ReplaceAll(text, space->replacement, drops ? "" : " ");
    } else if (const auto* replacement = std::get_if<TextReplacement>(&step)) {
      PACE_ASSIGN_OR_RETURN(text, replacement->Apply(text));
    } else {
      text = BytesOfToken(text).value_or(text);
    }
  }
  return text;
}

Status TokenDecoder::Add(TokenId id, std::string_view token, bool special) {
  const auto at = static_cast<size_t>(id);
  if (at >= tokens_.size()) tokens_.resize(at + 1);
  PACE_ASSIGN_OR_RETURN(std::string text, TextOf(token, false));
  PACE_ASSIGN_OR_RETURN(std::string first_text, drops_first_ ? TextOf(token, true) : std::string());
  tokens_[at] = {.known = true,
                 .special = special,
                 .byte = byte_fallback_ ? ByteIn(text) : std::nullopt,
                 .text = std::move(text),
                 .first_text = std::move(first_text)};
  return Status::Ok();
}

void TokenDecoder::Append(std::string_view text, DecodeProgress& progress, std::string& out) const {
  while (!progress.has_text && !text.empty()) {
    if (progress.num_stripped == max_stripped_ || !text.starts_with(strip_)) {
      progress.has_text = true;
      break;
    }
    text.remove_prefix(strip_.size());
    ++progress.num_stripped;
  }
  out += text;
}

void TokenDecoder::EndRun(DecodeProgress& progress, std::string& out) const {
  if (progress.bytes.empty()) return;
  const std::string bytes = std::exchange(progress.bytes, {});
  if (IsWellFormed(bytes)) return Append(bytes, progress, out);
  for (size_t i = 0; i < bytes.size(); ++i) Append(kReplacementCharacter, progress, out);
}

const TokenDecoder::Token* TokenDecoder::Find(TokenId id, bool skip_special) const {
  const auto at = static_cast<size_t>(id);
  if (id < 0 || at >= tokens_.size() || !tokens_[at].known) return nullptr;
  return skip_special && tokens_[at].special ? nullptr : &tokens_[at];
}

void TokenDecoder::Feed(TokenId id, bool skip_special, DecodeProgress& progress,
                        std::string& out) const {
  const Token* token = Find(id, skip_special);
  if (token == nullptr) return;
  const bool is_first = !std::exchange(progress.has_token, true);
  if (token->byte.has_value()) {
    progress.bytes += *token->byte;
    return;
  }
  EndRun(progress, out);
  if (space_between_ && !is_first) out += ' ';
  Append(is_first && drops_first_ ? token->first_text : token->text, progress, out);
}

bool TokenDecoder::AppendBytes(TokenId id, bool skip_special, bool is_first,
                               std::string& out) const {
  const Token* token = Find(id, skip_special);
  if (token == nullptr) return false;
  if (space_between_ && !is_first) out += ' ';
  if (token->byte.has_value()) {
    out += *token->byte;
  } else {
    out += is_first && drops_first_ ? token->first_text : token->text;
  }
  return true;
}

void TokenDecoder::Finish(DecodeProgress& progress, std::string& out) const {
  EndRun(progress, out);
}

bool TokenDecoder::IsSpecial(TokenId id) const {
  const auto at = static_cast<size_t>(id);
  return id >= 0 && at < tokens_.size() && tokens_[at].special;
}

uint32_t CharacterOfByte(unsigned char byte) {
  return kAlphabet.character_of[byte];
}

std::optional<std::string> BytesOfToken(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (size_t at = 0; at < token.size();) {
    const CodePoint point = ReadCodePoint(token, at);
    if (point.code >= kNumCharacters || kAlphabet.byte_of[point.code] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte_of[point.code]);
    at += point.num_bytes;
  }
  return bytes;
}

}  // namespace pace
