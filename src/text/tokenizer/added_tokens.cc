#include "text/tokenizer/added_tokens.h"

#include <algorithm>

#include "text/characters.h"

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

}  // namespace

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

}  // namespace pace
