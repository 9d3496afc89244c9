#include "convert/gguf_pre_tokenizers.h"

#include <algorithm>
#include <array>

#include "convert/tokenizer_spec.h"

namespace pace {
namespace {

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
