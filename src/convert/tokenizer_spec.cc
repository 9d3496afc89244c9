#include "convert/tokenizer_spec.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/check.h"
#include "core/concat.h"
#include "core/json_writer.h"
#include "core/utf8.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

// Appends `"key":`, after a comma if one is due; the key needs no escapes.
void AppendKey(std::string& out, std::string_view key) {
  if (out.back() != '{') out += ',';
  out += Concat("\n  \"", key, "\": ");
}

void AppendAdded(std::string& out, const std::vector<AddedToken>& added) {
  out += '[';
  for (size_t i = 0; i < added.size(); ++i) {
    const AddedToken& token = added[i];
    out += i == 0 ? "\n    " : ",\n    ";
    JsonWriter json(out);
    json.BeginObject();
    json.Put("id", token.id);
    json.Put("content", std::string_view(token.content));
    json.Put("single_word", token.single_word);
    json.Put("lstrip", token.lstrip);
    json.Put("rstrip", token.rstrip);
    json.Put("normalized", token.normalized);
    json.Put("special", token.special);
    json.EndObject();
  }
  out += ']';
}

// One text with its begin and end tokens, and two texts one after the other.
std::string PostProcessor(const TokenizerSpec& spec) {
  if (!spec.add_bos && !spec.add_eos) return "null";
  std::string tokens;
  const auto piece = [&](TokenId id) {
    std::string name;
    AppendJsonText(name, spec.tokens[static_cast<size_t>(id)]);
    if (!tokens.empty()) tokens += ", ";
    tokens += Concat(name, ": {\"id\": ", name, ", \"ids\": [", id, "], \"tokens\": [", name, "]}");
    return Concat("{\"SpecialToken\": {\"id\": ", name, ", \"type_id\": 0}}");
  };
  const std::string begin = spec.add_bos ? piece(*spec.bos) + ", " : "";
  const std::string end = spec.add_eos ? ", " + piece(*spec.eos) : "";
  const auto sequence = [&](std::string_view id) {
    return Concat(begin, "{\"Sequence\": {\"id\": \"", id, "\", \"type_id\": 0}}", end);
  };
  return Concat("{\"type\": \"TemplateProcessing\", \"single\": [", sequence("A"), "], \"pair\": [",
                sequence("A"), ", ", sequence("B"), "], \"special_tokens\": {", tokens, "}}");
}

void AppendModel(std::string& out, const TokenizerSpec& spec) {
  const auto truth = [](bool value) { return value ? "true" : "false"; };
  out += R"({"type": "BPE", "dropout": null, "unk_token": )";
  if (spec.unk.has_value()) {
    AppendJsonText(out, spec.tokens[static_cast<size_t>(*spec.unk)]);
  } else {
    out += "null";
  }
  out += Concat(R"(, "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": )",
                truth(spec.fuse_unk), R"(, "byte_fallback": )", truth(spec.byte_fallback),
                R"(, "ignore_merges": )", truth(spec.ignore_merges), ",\n    \"vocab\": {");
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    out += id == 0 ? "\n      " : ",\n      ";
    AppendJsonText(out, spec.tokens[id]);
    out += Concat(": ", id);
  }
  out += "\n    },\n    \"merges\": [";
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    out += rank == 0 ? "\n      [" : ",\n      [";
    AppendJsonText(out, spec.merges[rank].first);
    out += ", ";
    AppendJsonText(out, spec.merges[rank].second);
    out += ']';
  }
  out += "\n    ]\n  }";
}

std::string TokenizerJson(const TokenizerSpec& spec) {
  std::string out = "{";
  AppendKey(out, "version");
  out += "\"1.0\"";
  AppendKey(out, "truncation");
  out += "null";
  AppendKey(out, "padding");
  out += "null";
  AppendKey(out, "added_tokens");
  AppendAdded(out, spec.added);
  AppendKey(out, "normalizer");
  out += spec.normalizer;
  AppendKey(out, "pre_tokenizer");
  out += spec.pre_tokenizer;
  AppendKey(out, "post_processor");
  out += PostProcessor(spec);
  AppendKey(out, "decoder");
  out += spec.decoder;
  AppendKey(out, "model");
  AppendModel(out, spec);
  out += "\n}\n";
  return out;
}

std::string TokenizerConfigJson(const TokenizerSpec& spec) {
  std::string out = "{";
  const auto put = [&](std::string_view key, std::optional<TokenId> id) {
    if (!id.has_value()) return;
    AppendKey(out, key);
    AppendJsonText(out, spec.tokens[static_cast<size_t>(*id)]);
  };
  AppendKey(out, "tokenizer_class");
  out += "\"PreTrainedTokenizerFast\"";
  AppendKey(out, "clean_up_tokenization_spaces");
  out += "false";
  put("bos_token", spec.bos);
  put("eos_token", spec.eos);
  put("unk_token", spec.unk);
  put("pad_token", spec.pad);
  if (spec.chat_template.has_value()) {
    AppendKey(out, "chat_template");
    AppendJsonText(out, *spec.chat_template);
  }
  out += "\n}\n";
  return out;
}

Status CheckSpec(const TokenizerSpec& spec) {
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (!IsWellFormed(spec.tokens[id])) return InvalidArgument("token ", id, ": must be UTF-8");
  }
  const std::array<std::pair<std::string_view, std::optional<TokenId>>, 4> specials = {{
      {"unknown", spec.unk},
      {"begin", spec.bos},
      {"end", spec.eos},
      {"padding", spec.pad},
  }};
  for (const auto& [name, id] : specials) {
    if (id.has_value() && (*id < 0 || static_cast<size_t>(*id) >= spec.tokens.size())) {
      return InvalidArgument("the ", name, " token = ", *id, ": must be one of the ",
                             spec.tokens.size(), " tokens");
    }
  }
  if ((spec.add_bos && !spec.bos) || (spec.add_eos && !spec.eos)) {
    return InvalidArgument("texts are to begin or end with a token that is not named");
  }
  if (spec.chat_template.has_value() && !IsWellFormed(*spec.chat_template)) {
    return InvalidArgument("chat template: must be UTF-8");
  }
  return Status::Ok();
}

void Flatten(const TokenizerComponent& component, std::vector<const TokenizerComponent*>& out) {
  if (component.type != "Sequence") return out.push_back(&component);
  for (const TokenizerComponent& part : component.parts) Flatten(part, out);
}

bool SameStep(const TokenizerComponent* a, const TokenizerComponent* b) {
  return a->type == b->type && a->regex == b->regex && a->literal == b->literal &&
         a->behavior == b->behavior && a->invert == b->invert &&
         a->individual_digits == b->individual_digits &&
         a->add_prefix_space == b->add_prefix_space && a->use_regex == b->use_regex &&
         a->content == b->content && a->prepend == b->prepend && a->replacement == b->replacement &&
         a->prepend_scheme == b->prepend_scheme && a->split == b->split && a->start == b->start &&
         a->stop == b->stop;
}

std::string Sequence(std::string_view kind, std::string_view parts) {
  return Concat(R"({"type": "Sequence", ")", kind, R"(": [)", parts, "]}");
}

// token[i] = token[i + period] throughout.
bool HasPeriod(std::string_view token, size_t period) {
  return token.substr(period) == token.substr(0, token.size() - period);
}

// Where a token can be cut in two tokens, in the order of their merges.
std::vector<size_t> Cuts(std::string_view token,
                         const std::unordered_set<std::string_view>& known) {
  std::vector<size_t> cuts;
  for (size_t at = ReadCodePoint(token, 0).num_bytes; at < token.size();
       at += ReadCodePoint(token, at).num_bytes) {
    if (known.contains(token.substr(0, at)) && known.contains(token.substr(at))) {
      cuts.push_back(at);
    }
  }
  std::reverse(cuts.begin(), cuts.end());
  // x + y = y + z where x is as long as z: cuts at |x| and at |y|. With
  // |x| < |y| the shorter left part must come first.
  for (auto longer = cuts.begin(); longer != cuts.end(); ++longer) {
    const size_t cut = token.size() - *longer;
    if (cut >= *longer || !HasPeriod(token, cut) || HasPeriod(token, *longer)) continue;
    const auto shorter = std::find(longer, cuts.end(), cut);
    if (shorter != cuts.end()) std::iter_swap(longer, shorter);
  }
  return cuts;
}

constexpr std::string_view kGpt2 =
    R"json({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})json";

constexpr std::string_view kDigits =
    R"json({"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})json";

// Both cut words alike; numbers by three digits or one by one.
constexpr std::string_view kLlama3 =
    R"json({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex":
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
       "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})json";

constexpr std::string_view kQwen2 =
    R"json({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex":
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
       "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]})json";

constexpr std::string_view kDefault =
    R"json({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex":
        "[\\p{P}\\$\\+<=>\\^~\\|]+"},
       "behavior": "Isolated", "invert": false},
      {"type": "Split", "pattern": {"Regex":
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"},
       "behavior": "Isolated", "invert": false},
      {"type": "Split", "pattern": {"Regex":
        "\\p{N}+"},
       "behavior": "Isolated", "invert": false},
      {"type": "Split", "pattern": {"Regex":
        "[0-9][0-9][0-9]"},
       "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})json";

constexpr std::string_view kNfc = R"({"type": "NFC"})";
constexpr std::string_view kNone = "null";

// Of those with one pipeline the first gives its name to what we write.
constexpr auto kKnown = std::to_array<GgufPreTokenizer>({
    {"gpt-2", kNone, kGpt2},
    {"phi-2", kNone, kGpt2},
    {"smollm", kNone, kDigits},
    {"starcoder", kNone, kDigits},
    {"refact", kNone, kDigits},
    {"codeshell", kNone, kDigits},
    {"llama-bpe", kNone, kLlama3, true, true},
    {"llama3", kNone, kLlama3, true, true},
    {"llama-v3", kNone, kLlama3, true, true},
    {"smaug-bpe", kNone, kLlama3},
    {"qwen2", kNfc, kQwen2},
    {"deepseek-r1-qwen", kNfc, kQwen2},
    {"default", kNone, kDefault},
});

}  // namespace

Result<std::vector<FolderText>> TokenizerFiles(const TokenizerSpec& spec) {
  PACE_RETURN_IF_ERROR(CheckSpec(spec));
  std::string json = TokenizerJson(spec);
  const Result<Tokenizer> tokenizer = Tokenizer::Parse(json);
  if (!tokenizer.ok()) return tokenizer.status().At("tokenizer");
  std::vector<FolderText> files;
  files.push_back({"tokenizer.json", std::move(json)});
  files.push_back({"tokenizer_config.json", TokenizerConfigJson(spec)});
  return files;
}

bool SameComponent(const std::optional<TokenizerComponent>& a,
                   const std::optional<TokenizerComponent>& b) {
  std::vector<const TokenizerComponent*> left;
  std::vector<const TokenizerComponent*> right;
  if (a.has_value()) Flatten(*a, left);
  if (b.has_value()) Flatten(*b, right);
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), SameStep);
}

TokenizerFile FileOfComponents(std::string_view normalizer, std::string_view pre_tokenizer,
                               std::string_view decoder) {
  const Result<TokenizerFile> file = ParseTokenizerFile(Concat(
      R"({"normalizer": )", normalizer, R"(, "pre_tokenizer": )", pre_tokenizer, R"(, "decoder": )",
      decoder, R"(, "model": {"type": "BPE", "vocab": {}, "merges": []}})"));
  PACE_CHECK(file.ok(), file.status().message());
  return *file;
}

void PutSentencePiece(SpaceMark mark, bool add_space, TokenizerSpec& spec) {
  const bool marked = mark == SpaceMark::kLowLine;
  std::string normalizers;
  std::string decoders;
  if (add_space) {
    normalizers +=
        Concat(R"({"type": "Prepend", "prepend": ")", marked ? kLowLineMark : " ", R"("})");
  }
  if (marked) {
    if (add_space) normalizers += ", ";
    normalizers += Concat(R"({"type": "Replace", "pattern": {"String": " "}, "content": ")",
                          kLowLineMark, R"("})");
    decoders += Concat(R"({"type": "Replace", "pattern": {"String": ")", kLowLineMark,
                       R"("}, "content": " "}, )");
  }
  decoders += R"({"type": "ByteFallback"}, {"type": "Fuse"})";
  if (add_space) decoders += R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})";
  spec.normalizer = normalizers.empty() ? "null" : Sequence("normalizers", normalizers);
  spec.decoder = Sequence("decoders", decoders);
  spec.byte_fallback = true;
  spec.fuse_unk = true;
}

std::vector<std::pair<std::string, std::string>> MergesFromScores(
    std::span<const std::string> tokens, std::span<const float> scores) {
  PACE_CHECK(tokens.size() == scores.size(), tokens.size(), " tokens, ", scores.size(), " scores");
  const std::unordered_set<std::string_view> known(tokens.begin(), tokens.end());
  std::vector<size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  std::vector<std::pair<std::string, std::string>> merges;
  for (const size_t id : order) {
    const std::string_view token = tokens[id];
    if (token.empty()) continue;
    for (const size_t cut : Cuts(token, known)) {
      merges.emplace_back(token.substr(0, cut), token.substr(cut));
    }
  }
  return merges;
}

const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name) {
  const auto* const found =
      std::find_if(kKnown.begin(), kKnown.end(),
                   [name](const GgufPreTokenizer& known) { return known.name == name; });
  return found == kKnown.end() ? nullptr : found;
}

const GgufPreTokenizer* GgufPreTokenizerOf(const TokenizerFile& file) {
  for (const GgufPreTokenizer& known : kKnown) {
    const TokenizerFile model = FileOfComponents(known.normalizer, known.pre_tokenizer, kNone);
    if (known.ignore_merges == file.ignore_merges &&
        SameComponent(model.normalizer, file.normalizer) &&
        SameComponent(model.pre_tokenizer, file.pre_tokenizer)) {
      return &known;
    }
  }
  return nullptr;
}

std::string GgufPreTokenizerNames() {
  std::string names;
  for (const GgufPreTokenizer& known : kKnown) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

}  // namespace pace
