#include "text/tokenizer/word_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <tuple>

#include "core/printable.h"
#include "core/utf8.h"
#include "text/tokenizer/token_decoder.h"

namespace pace {
namespace {

// Up to here, looking at every pair again is faster than keeping a queue.
constexpr size_t kMaxShort = 32;

}  // namespace

void MergeTable::Reset(size_t num_merges) {
  slots_.assign(std::bit_ceil(num_merges * 2 + 2), Slot());
  mask_ = slots_.size() - 1;
}

void MergeTable::Insert(TokenId left, TokenId right, Merge merge) {
  const uint64_t key = KeyOf(left, right);
  size_t at = HomeOf(key);
  while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask_;
  slots_[at] = {key, merge};
}

void MergeTable::Apply(std::vector<TokenId>& symbols) const {
  if (symbols.size() < 2 || slots_.empty()) return;
  symbols.size() <= kMaxShort ? ApplyToShort(symbols) : ApplyToLong(symbols);
}

void MergeTable::ApplyToShort(std::vector<TokenId>& symbols) const {
  std::array<Merge, kMaxShort> pairs;
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = Find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (!pairs[best].joins()) break;
    symbols[best] = pairs[best].joined;
    --count;
    for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best > 0) pairs[best - 1] = Find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) pairs[best] = Find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

// A queue of candidate pairs over a linked list; one that no longer stands when
// its turn comes is passed over.
void MergeTable::ApplyToLong(std::vector<TokenId>& symbols) const {
  const size_t size = symbols.size();
  constexpr TokenId kGone = INT32_MIN;
  std::vector<size_t> next(size);
  std::vector<size_t> previous(size);
  using Candidate = std::tuple<uint32_t, size_t, TokenId, TokenId, TokenId>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t left, size_t right) {
    const Merge merge = Find(symbols[left], symbols[right]);
    if (merge.joins()) queue.emplace(merge.rank, left, symbols[left], symbols[right], merge.joined);
  };
  for (size_t i = 0; i < size; ++i) {
    next[i] = i + 1;
    previous[i] = i;  // the first is its own predecessor
    if (i > 0) previous[i] = i - 1;
  }
  for (size_t i = 0; i + 1 < size; ++i) offer(i, i + 1);
  while (!queue.empty()) {
    const auto [rank, at, left, right, joined] = queue.top();
    queue.pop();
    const size_t behind = next[at];
    if (symbols[at] != left || behind >= size || symbols[behind] != right) continue;
    symbols[at] = joined;
    symbols[behind] = kGone;
    next[at] = next[behind];
    if (next[at] < size) {
      previous[next[at]] = at;
      offer(at, next[at]);
    }
    if (at > 0) offer(previous[at], at);
  }
  std::erase(symbols, kGone);
}

Result<std::unique_ptr<WordModel>> WordModel::Build(const TokenizerFile& file, bool byte_level) {
  std::unique_ptr<WordModel> model(new WordModel());
  model->is_bpe_ = file.model == TokenizerFile::Model::kBpe;
  model->byte_level_ = byte_level;
  model->ignore_merges_ = file.ignore_merges;
  model->fuse_unk_ = file.fuse_unk;
  PACE_RETURN_IF_ERROR(model->ReadVocab(file));
  PACE_RETURN_IF_ERROR(model->ReadMerges(file));
  if (file.unk_token.has_value()) {
    model->unk_ = model->Find(*file.unk_token);
    if (!model->unk_.has_value()) {
      return InvalidArgument("model.unk_token = ", Printable(*file.unk_token),
                             ": must be in model.vocab");
    }
  }
  if (file.byte_fallback && byte_level) {
    return InvalidArgument("model.byte_fallback = true: is not supported beside ByteLevel");
  }
  model->byte_fallback_ = file.byte_fallback;
  if (file.byte_fallback) model->FindByteTokens();
  if (byte_level) model->SpellInBytes();
  return model;
}

Status WordModel::ReadVocab(const TokenizerFile& file) {
  size_t size = 0;
  for (const auto& [token, id] : file.vocab) size = std::max(size, static_cast<size_t>(id) + 1);
  // Ids may have gaps, but not so many that the table is mostly holes.
  if (size > 2 * file.vocab.size() + 65536) {
    return InvalidArgument("model.vocab: id ", size - 1, " among ", file.vocab.size(),
                           " tokens: ids must be nearly dense");
  }
  tokens_.resize(size);
  std::vector<bool> taken(size, false);
  for (const auto& [token, id] : file.vocab) {
    const auto at = static_cast<size_t>(id);
    if (taken[at]) {
      return InvalidArgument("model.vocab.", Printable(token), " = ", id, ": another token has it");
    }
    taken[at] = true;
    tokens_[at] = token;
  }
  by_name_.emplace(tokens_, file.vocab.size());
  for (const auto& [token, id] : file.vocab) {
    if (!by_name_->Insert(id)) {
      return InvalidArgument("model.vocab.", Printable(token), ": occurs twice");
    }
  }
  whole_ = std::make_unique<std::atomic<uint8_t>[]>(size);
  return Status::Ok();
}

Status WordModel::ReadMerges(const TokenizerFile& file) {
  merges_.Reset(file.merges.size());
  std::string joined;
  for (size_t rank = 0; rank < file.merges.size(); ++rank) {
    const auto& [left, right] = file.merges[rank];
    joined.assign(left).append(right);
    const auto left_id = Find(left);
    const auto right_id = Find(right);
    const auto joined_id = Find(joined);
    if (!left_id.has_value() || !right_id.has_value() || !joined_id.has_value()) {
      return InvalidArgument("model.merges[", rank, "] = ", Printable(Concat(left, " ", right)),
                             ": both tokens and what they join to must be in model.vocab");
    }
    merges_.Insert(*left_id, *right_id, {static_cast<uint32_t>(rank), *joined_id});
  }
  return Status::Ok();
}

// Pieces are looked up by their bytes, not by how the file writes them. A token
// outside the byte alphabet cannot come out of text; it only decodes.
void WordModel::SpellInBytes() {
  spelled_.resize(tokens_.size());
  by_piece_.emplace(spelled_, tokens_.size());
  for (size_t id = 0; id < tokens_.size(); ++id) {
    std::optional<std::string> bytes = BytesOfToken(tokens_[id]);
    if (tokens_[id].empty() || !bytes.has_value()) continue;
    spelled_[id] = *std::move(bytes);
    by_piece_->Insert(static_cast<TokenId>(id));
    if (spelled_[id].size() == 1) {
      byte_tokens_[static_cast<unsigned char>(spelled_[id][0])] = static_cast<TokenId>(id);
    }
  }
}

Status WordModel::Encode(std::string_view piece, std::vector<TokenId>& out) const {
  const std::optional<TokenId> id = (byte_level_ ? *by_piece_ : *by_name_).Find(piece);
  if (!is_bpe_) {
    if (!id.has_value() && !unk_.has_value()) {
      return InvalidArgument("'", Printable(piece),
                             "': is not in the vocabulary, and the tokenizer has no unk_token");
    }
    out.push_back(id.has_value() ? *id : *unk_);
    return Status::Ok();
  }
  if (!id.has_value()) {
    EncodeBpe(piece, out);
    return Status::Ok();
  }
  // Most words of a text are tokens; whether BPE arrives at them is kept.
  std::atomic<uint8_t>& whole = whole_[static_cast<size_t>(*id)];
  const uint8_t known = whole.load(std::memory_order_relaxed);
  if (ignore_merges_ || known == kYes) {
    out.push_back(*id);
    return Status::Ok();
  }
  const size_t begin = out.size();
  EncodeBpe(piece, out);
  if (known == kUnknown) {
    const bool same = out.size() == begin + 1 && out[begin] == *id;
    whole.store(same ? kYes : kNo, std::memory_order_relaxed);
  }
  return Status::Ok();
}

void WordModel::EncodeBpe(std::string_view piece, std::vector<TokenId>& out) const {
  std::vector<TokenId> symbols;
  symbols.reserve(piece.size());
  FirstSymbols(piece, symbols);
  merges_.Apply(symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void WordModel::FindByteTokens() {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    byte_tokens_[byte] = Find(Concat("<0x", kHex[byte >> 4], kHex[byte & 15], ">"));
  }
}

// All bytes of a character, or nothing.
bool WordModel::FallBackToBytes(std::string_view character, std::vector<TokenId>& out) const {
  const size_t begin = out.size();
  for (const char c : character) {
    const std::optional<TokenId> id = byte_tokens_[static_cast<unsigned char>(c)];
    if (!id.has_value()) {
      out.resize(begin);
      return false;
    }
    out.push_back(*id);
  }
  return true;
}

// A symbol that the vocabulary lacks becomes its bytes, else unk_token, a row of
// them one if fused; without an unk_token it vanishes. As in the `tokenizers`
// library an unk_token waits for the next symbol that is no byte fallback.
void WordModel::FirstSymbols(std::string_view piece, std::vector<TokenId>& out) const {
  bool unk_waits = false;
  const auto put_unk = [&] {
    if (unk_waits) out.push_back(*unk_);
    unk_waits = false;
  };
  for (size_t at = 0; at < piece.size();) {
    std::optional<TokenId> id;
    size_t num_bytes = 1;
    if (byte_level_) {
      id = byte_tokens_[static_cast<unsigned char>(piece[at])];
    } else {
      num_bytes = ReadCodePoint(piece, at).num_bytes;
      id = by_name_->Find(piece.substr(at, num_bytes));
    }
    const std::string_view symbol = piece.substr(at, num_bytes);
    at += num_bytes;
    if (id.has_value()) {
      put_unk();
      out.push_back(*id);
    } else if (byte_fallback_ && FallBackToBytes(symbol, out)) {
      continue;
    } else if (unk_.has_value()) {
      if (!fuse_unk_) put_unk();
      unk_waits = true;
    }
  }
  put_unk();
}

}  // namespace pace
