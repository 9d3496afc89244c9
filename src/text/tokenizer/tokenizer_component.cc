#include "text/tokenizer/tokenizer_component.h"

#include <algorithm>
#include <array>

#include "core/printable.h"
#include "core/utf8.h"

namespace pace {
namespace {

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

}  // namespace

bool ScanComponent(JsonScanner& scan, const std::string& where,
                   std::optional<TokenizerComponent>& out) {
  if (scan.TakeNull()) return true;
  out.emplace().where = where;
  return ComponentReader(scan, *out, 0).Read();
}

}  // namespace pace
