#include "text/tokenizer/tokenizer_file.h"

#include <algorithm>
#include <array>

#include "core/json_scanner.h"
#include "core/printable.h"
#include "core/utf8.h"

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

constexpr int kMaxDepth = 8;
constexpr int64_t kMaxStripped = 1 << 20;

// Which keys each type has, "type" aside.
struct TypeRule {
  std::string_view type;
  std::array<std::string_view, 5> keys;
};
constexpr TypeRule kTypes[] = {
    {"Sequence", {"normalizers", "pretokenizers", "processors", "decoders", ""}},
    {"NFC", {}},
    {"NFD", {}},
    {"NFKC", {}},
    {"NFKD", {}},
    {"Prepend", {"prepend", "", "", "", ""}},
    {"Replace", {"pattern", "content", "", "", ""}},
    {"Split", {"pattern", "behavior", "invert", "", ""}},
    {"Digits", {"individual_digits", "", "", "", ""}},
    {"ByteLevel", {"add_prefix_space", "trim_offsets", "use_regex", "", ""}},
    {"Metaspace", {"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"}},
    {"TemplateProcessing", {"single", "pair", "special_tokens", "", ""}},
    {"ByteFallback", {}},
    {"Fuse", {}},
    {"Strip", {"content", "start", "stop", "", ""}},
};

void ScanPattern(JsonScanner& scan, TokenizerComponent& out) {
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "Regex") {
      scan.Text(out.regex.emplace());
    } else if (scan.key() == "String") {
      scan.Text(out.literal.emplace());
    } else {
      scan.FailUnknownKey();
    }
  }
  if (scan.ok() && out.regex.has_value() == out.literal.has_value()) {
    scan.Fail("needs either 'Regex' or 'String'");
  }
}

// The id in {"SpecialToken": {"id": ..., "type_id": 0}} or {"Sequence": ...}.
bool ScanPiece(JsonScanner& scan, bool& is_sequence, std::string& id) {
  scan.EnterObject();
  while (scan.NextKey()) {
    is_sequence = scan.key() == "Sequence";
    if (!is_sequence && scan.key() != "SpecialToken") return scan.FailUnknownKey();
    scan.EnterObject();
    while (scan.NextKey()) {
      int64_t type_id = 0;
      if (scan.key() == "id") {
        scan.Text(id);
      } else if (scan.key() == "type_id") {
        scan.Integer(0, 1 << 20, "", type_id);
      } else {
        scan.FailUnknownKey();
      }
    }
  }
  return scan.ok();
}

void ScanTemplate(JsonScanner& scan, TokenizerComponent& out) {
  int num_sequences = 0;
  scan.EnterArray();
  while (scan.NextItem()) {
    bool is_sequence = false;
    std::string id;
    if (!ScanPiece(scan, is_sequence, id)) return;
    if (is_sequence) {
      ++num_sequences;
    } else {
      (num_sequences == 0 ? out.prefix : out.suffix).push_back(std::move(id));
    }
  }
  if (scan.ok() && num_sequences != 1) scan.Fail("a template of one text has one Sequence");
}

void ScanTemplateTokens(JsonScanner& scan, TokenizerComponent& out) {
  scan.EnterObject();
  while (scan.NextKey()) {
    auto& [name, ids] = out.special_tokens.emplace_back();
    name = scan.key();
    scan.EnterObject();
    while (scan.NextKey()) {
      if (scan.key() == "ids") {
        scan.EnterArray();
        while (scan.NextItem()) {
          int64_t id = 0;
          scan.Integer(0, (1 << 24) - 1, "", id);
          ids.push_back(static_cast<TokenId>(id));
        }
      } else if (scan.key() == "id" || scan.key() == "tokens") {
        scan.Skip();
      } else {
        scan.FailUnknownKey();
      }
    }
  }
}

class ComponentReader {
 public:
  ComponentReader(JsonScanner& scan, TokenizerComponent& out, int depth)
      : scan_(scan), out_(out), depth_(depth) {}

  bool Read() {
    if (depth_ > kMaxDepth) return scan_.Fail("nested too deeply");
    scan_.EnterObject();
    while (scan_.NextKey()) ReadField(std::string(scan_.key()));
    if (!scan_.ok()) return false;
    return CheckKeys();
  }

 private:
  void ReadField(const std::string& key) {
    keys_.push_back(key);
    if (key == "type") {
      scan_.Text(out_.type);
    } else if (key == "pattern") {
      ScanPattern(scan_, out_);
    } else if (key == "behavior") {
      scan_.Text(out_.behavior);
    } else if (key == "invert") {
      scan_.Bool(out_.invert);
    } else if (key == "individual_digits") {
      scan_.Bool(out_.individual_digits);
    } else if (key == "add_prefix_space") {
      scan_.Bool(out_.add_prefix_space);
    } else if (key == "use_regex") {
      scan_.Bool(out_.use_regex);
    } else if (key == "content") {
      scan_.Text(out_.content.emplace());
    } else if (key == "prepend") {
      scan_.Text(out_.prepend);
    } else if (key == "replacement") {
      scan_.Text(out_.replacement);
    } else if (key == "prepend_scheme") {
      scan_.Text(out_.prepend_scheme);
    } else if (key == "split") {
      scan_.Bool(out_.split);
    } else if (key == "start") {
      scan_.Integer(0, kMaxStripped, "", out_.start);
    } else if (key == "stop") {
      scan_.Integer(0, kMaxStripped, "", out_.stop);
    } else if (key == "single") {
      ScanTemplate(scan_, out_);
    } else if (key == "special_tokens") {
      ScanTemplateTokens(scan_, out_);
    } else if (key == "normalizers" || key == "pretokenizers" || key == "processors" ||
               key == "decoders") {
      ReadParts(key);
    } else {
      // Offsets and pairs of texts have no part here; other keys are judged
      // once the type is known.
      scan_.Skip();
    }
  }

  void ReadParts(const std::string& key) {
    scan_.EnterArray();
    while (scan_.NextItem()) {
      TokenizerComponent& part = out_.parts.emplace_back();
      part.where = Concat(out_.where, ".", key, "[", out_.parts.size() - 1, "]");
      if (!ComponentReader(scan_, part, depth_ + 1).Read()) return;
    }
  }

  bool CheckKeys() {
    const auto* rule = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [this](const TypeRule& r) { return r.type == out_.type; });
    if (rule == std::end(kTypes)) {
      return scan_.FailWith(
          InvalidArgument(out_.where, ".type = ", Printable(out_.type), ": is not supported"));
    }
    for (const std::string& key : keys_) {
      if (key == "type" ||
          std::find(rule->keys.begin(), rule->keys.end(), key) != rule->keys.end()) {
        continue;
      }
      return scan_.FailWith(
          InvalidArgument(out_.where, ".", Printable(key), ": unknown key of ", out_.type));
    }
    return out_.type != "Metaspace" || CheckMetaspace();
  }

  bool CheckMetaspace() {
    if (CountCodePoints(out_.replacement) != 1) {
      return scan_.FailWith(InvalidArgument(out_.where, ".replacement: must be one character"));
    }
    const std::string& scheme = out_.prepend_scheme;
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      return scan_.FailWith(InvalidArgument(out_.where, ".prepend_scheme = ", Printable(scheme),
                                            ": must be always, first or never"));
    }
    // The older key; true says nothing beside the newer one.
    if (!out_.add_prefix_space && scheme != "never") {
      return scan_.FailWith(InvalidArgument(out_.where, ".add_prefix_space = false: needs ",
                                            "prepend_scheme = never"));
    }
    return true;
  }

  JsonScanner& scan_;
  TokenizerComponent& out_;
  int depth_;
  std::vector<std::string> keys_;
};

// A component or null; `where` is its key in the file.
bool ScanComponent(JsonScanner& scan, const std::string& where,
                   std::optional<TokenizerComponent>& out) {
  if (scan.TakeNull()) return true;
  out.emplace().where = where;
  return ComponentReader(scan, *out, 0).Read();
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
