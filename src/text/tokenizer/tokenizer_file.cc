#include "text/tokenizer/tokenizer_file.h"

#include "core/json_scanner.h"
#include "text/tokenizer/tokenizer_component.h"

namespace pace {
namespace {

constexpr int64_t kMaxTokenId = (1 << 24) - 1;

bool ScanAddedToken(JsonScanner& scan, AddedToken& token) {
  bool has_id = false;
  bool has_content = false;
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    if (key == "id") {
      int64_t id = 0;
      has_id = scan.Integer(0, kMaxTokenId, "", id);
      token.id = static_cast<TokenId>(id);
    } else if (key == "content") {
      has_content = scan.Text(token.content);
    } else if (key == "single_word") {
      scan.Bool(token.single_word);
    } else if (key == "lstrip") {
      scan.Bool(token.lstrip);
    } else if (key == "rstrip") {
      scan.Bool(token.rstrip);
    } else if (key == "normalized") {
      scan.Bool(token.normalized);
    } else if (key == "special") {
      scan.Bool(token.special);
    } else {
      scan.FailUnknownKey();
    }
  }
  if (scan.ok() && (!has_id || !has_content)) return scan.Fail("needs 'id' and 'content'");
  if (scan.ok() && token.content.empty()) return scan.Fail("content must not be empty");
  return scan.ok();
}

void ScanVocab(JsonScanner& scan, TokenizerFile& file) {
  scan.EnterObject();
  while (scan.NextKey()) {
    int64_t id = 0;
    std::string token(scan.key());
    if (!scan.Integer(0, kMaxTokenId, "", id)) return;
    file.vocab.emplace_back(std::move(token), static_cast<TokenId>(id));
  }
}

// "a b" in older files, ["a", "b"] in newer ones.
bool ScanMerge(JsonScanner& scan, std::pair<std::string, std::string>& merge) {
  if (scan.NextKind() == JsonScanner::Kind::kArray) {
    scan.EnterArray();
    int64_t count = 0;
    for (; scan.NextItem(); ++count) {
      if (count > 1) return scan.Fail("a merge is of two tokens");
      scan.Text(count == 0 ? merge.first : merge.second);
    }
    if (scan.ok() && count != 2) return scan.Fail("a merge is of two tokens");
    return scan.ok();
  }
  std::string both;
  if (!scan.Text(both)) return false;
  const size_t space = both.find(' ');
  if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos) {
    return scan.Fail("a merge is two tokens with one space between");
  }
  merge = {both.substr(0, space), both.substr(space + 1)};
  return true;
}

void ScanMerges(JsonScanner& scan, TokenizerFile& file) {
  scan.EnterArray();
  while (scan.NextItem()) {
    if (!ScanMerge(scan, file.merges.emplace_back())) return;
  }
}

// Null, or a text that must be empty: a feature that is switched off.
bool ScanAbsentText(JsonScanner& scan) {
  std::string text;
  if (scan.TakeNull() || !scan.Text(text)) return scan.ok();
  return text.empty() || scan.Fail("is not supported (must be null or empty)");
}

bool ScanDropout(JsonScanner& scan) {
  double dropout = 0;
  if (scan.TakeNull()) return true;
  return scan.Real(0, 0, "dropout is not supported", dropout);
}

bool ScanModelType(JsonScanner& scan, TokenizerFile& file) {
  std::string type;
  if (!scan.Text(type)) return false;
  if (type == "BPE") return true;
  file.model = TokenizerFile::Model::kWordLevel;
  return type == "WordLevel" || scan.FailValue(type, "must be BPE or WordLevel", "");
}

void ScanModel(JsonScanner& scan, TokenizerFile& file) {
  bool has_vocab = false;
  bool has_merges = false;
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    if (key == "type") {
      ScanModelType(scan, file);
    } else if (key == "vocab") {
      has_vocab = true;
      ScanVocab(scan, file);
    } else if (key == "merges") {
      has_merges = true;
      ScanMerges(scan, file);
    } else if (key == "unk_token") {
      std::string token;
      if (!scan.TakeNull() && scan.Text(token) && !token.empty()) file.unk_token = token;
    } else if (key == "fuse_unk") {
      scan.Bool(file.fuse_unk);
    } else if (key == "ignore_merges") {
      scan.Bool(file.ignore_merges);
    } else if (key == "byte_fallback") {
      scan.Bool(file.byte_fallback);
    } else if (key == "continuing_subword_prefix" || key == "end_of_word_suffix") {
      ScanAbsentText(scan);
    } else if (key == "dropout") {
      ScanDropout(scan);
    } else {
      scan.FailUnknownKey();
    }
  }
  if (!has_vocab) scan.Fail("needs 'vocab'");
  const bool bpe = file.model == TokenizerFile::Model::kBpe;
  if (bpe != has_merges) {
    scan.Fail(bpe ? "a BPE model needs 'merges'" : "a WordLevel model has no 'merges'");
  }
}

bool ScanNull(JsonScanner& scan) {
  return scan.TakeNull() || scan.Fail("is not supported (must be null)");
}

}  // namespace

Result<TokenizerFile> ParseTokenizerFile(std::string_view json) {
  TokenizerFile file;
  bool has_model = false;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    if (key == "version") {
      std::string version;
      if (scan.Text(version) && version != "1.0") scan.FailValue(version, "must be 1.0", "");
    } else if (key == "truncation" || key == "padding") {
      ScanNull(scan);
    } else if (key == "added_tokens") {
      scan.EnterArray();
      while (scan.NextItem()) ScanAddedToken(scan, file.added_tokens.emplace_back());
    } else if (key == "model") {
      has_model = true;
      ScanModel(scan, file);
    } else if (key == "normalizer") {
      ScanComponent(scan, "normalizer", file.normalizer);
    } else if (key == "pre_tokenizer") {
      ScanComponent(scan, "pre_tokenizer", file.pre_tokenizer);
    } else if (key == "post_processor") {
      ScanComponent(scan, "post_processor", file.post_processor);
    } else if (key == "decoder") {
      ScanComponent(scan, "decoder", file.decoder);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!has_model) return InvalidArgument("needs 'model'");
  return file;
}

}  // namespace pace
