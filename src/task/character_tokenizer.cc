#include "task/character_tokenizer.h"

#include "core/json_writer.h"
#include "task/synthetic_task.h"

namespace pace {
namespace {

static_assert(kFirstCharacterId + static_cast<TokenId>(kTaskCharacters.size()) ==
              kNumCharacterTokens);

void PutAddedToken(JsonWriter& json, TokenId id, std::string_view content, bool special) {
  json.BeginObject();
  json.Put("id", id);
  json.Put("content", content);
  json.Put("single_word", false);
  json.Put("lstrip", false);
  json.Put("rstrip", false);
  json.Put("normalized", false);
  json.Put("special", special);
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

void PutModel(JsonWriter& json) {
  json.BeginObject();
  json.Put("type", "WordLevel");
  json.Key("vocab");
  json.BeginObject();
  json.Put(kPadToken, kPadTokenId);
  json.Put(kEndToken, kEndTokenId);
  json.Put(kAnswerMarker, kAnswerMarkerId);
  for (size_t i = 0; i < kTaskCharacters.size(); ++i) {
    json.Put(kTaskCharacters.substr(i, 1), kFirstCharacterId + static_cast<TokenId>(i));
  }
  json.EndObject();
  // Readers ask for the key; empty means that there is none.
  json.Put("unk_token", "");
  json.EndObject();
}

}  // namespace

std::string CharacterTokenizerJson() {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("version", "1.0");
  json.Put("truncation", nullptr);
  json.Put("padding", nullptr);
  json.Key("added_tokens");
  json.BeginArray();
  PutAddedToken(json, kPadTokenId, kPadToken, true);
  PutAddedToken(json, kEndTokenId, kEndToken, true);
  PutAddedToken(json, kAnswerMarkerId, kAnswerMarker, false);
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
  PutModel(json);
  json.EndObject();
  return out;
}

}  // namespace pace
