#include "task/character_tokenizer.h"

#include <vector>

#include "core/json_writer.h"
#include "task/code_interpreter.h"
#include "task/synthetic_task.h"

namespace pace {
namespace {

static_assert(kFirstCharacterId + static_cast<TokenId>(kTaskCharacters.size()) ==
              kNumCharacterTokens);
constexpr std::string_view kUnknown = "<unk>";
// Newline, then what ASCII can show.
constexpr std::string_view kCharacters =
    "\n !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
    "abcdefghijklmnopqrstuvwxyz{|}~";
constexpr size_t kNumWholeTokens = 10;
static_assert(kNumWholeTokens + kCharacters.size() == kNumToolTokens);

struct WholeToken {
  std::string_view text;
  bool special = false;  // decoding may leave it out
};

// Whole tokens and single characters. Ids count up from 0 in this order.
struct CharacterVocabulary {
  std::vector<WholeToken> tokens;
  std::string_view characters;
  // The whole token that stands for any other character; empty: those are an error.
  std::string_view unknown = {};
};

void PutAddedToken(JsonWriter& json, TokenId id, const WholeToken& token) {
  json.BeginObject();
  json.Put("id", id);
  json.Put("content", token.text);
  json.Put("single_word", false);
  json.Put("lstrip", false);
  json.Put("rstrip", false);
  json.Put("normalized", false);
  json.Put("special", token.special);
  json.EndObject();
}

// An empty pattern splits between all characters.
void PutPreTokenizer(JsonWriter& json) {
  json.BeginObject();
  json.Put("type", "Split");
  json.Key("pattern");
  json.BeginObject();
  json.Put("Regex", "");
  json.EndObject();
  json.Put("behavior", "Isolated");
  json.Put("invert", false);
  json.EndObject();
}

void PutModel(JsonWriter& json, const CharacterVocabulary& vocabulary) {
  TokenId next = 0;
  json.BeginObject();
  json.Put("type", "WordLevel");
  json.Key("vocab");
  json.BeginObject();
  const auto put = [&](std::string_view text) {
    json.TextKey(text);
    json.Value(next++);
  };
  for (const WholeToken& token : vocabulary.tokens) put(token.text);
  for (size_t i = 0; i < vocabulary.characters.size(); ++i) {
    put(vocabulary.characters.substr(i, 1));
  }
  json.EndObject();
  // Readers ask for the key; empty means that there is none.
  json.Put("unk_token", vocabulary.unknown);
  json.EndObject();
}

std::string TokenizerJson(const CharacterVocabulary& vocabulary) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("version", "1.0");
  json.Put("truncation", nullptr);
  json.Put("padding", nullptr);
  json.Key("added_tokens");
  json.BeginArray();
  for (TokenId next = 0; const WholeToken& token : vocabulary.tokens) {
    PutAddedToken(json, next++, token);
  }
  json.EndArray();
  json.Put("normalizer", nullptr);
  json.Key("pre_tokenizer");
  PutPreTokenizer(json);
  json.Put("post_processor", nullptr);
  json.Key("decoder");
  json.BeginObject();
  json.Put("type", "Fuse");
  json.EndObject();
  json.Key("model");
  PutModel(json, vocabulary);
  json.EndObject();
  return out;
}

}  // namespace

std::string CharacterTokenizerJson() {
  return TokenizerJson({.tokens = {{kPadToken, true}, {kEndToken, true}, {kAnswerMarker, false}},
                        .characters = kTaskCharacters});
}

std::string ToolTokenizerJson() {
  const CharacterVocabulary vocabulary{.tokens = {{"<pad>", true},
                                                  {"<|im_end|>", true},
                                                  {kUnknown, false},
                                                  {"<|im_start|>user\n", false},
                                                  {"<|im_start|>assistant\n", false},
                                                  {kPrintCallBegin, false},
                                                  {kPrintCallEnd, false},
                                                  {"<tool_response>\n", false},
                                                  {"\n</tool_response>", false},
                                                  {"\\boxed{", false}},
                                       .characters = kCharacters,
                                       .unknown = kUnknown};
  return TokenizerJson(vocabulary);
}

}  // namespace pace
