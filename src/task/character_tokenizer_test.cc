#include "task/character_tokenizer.h"

#include <gtest/gtest.h>

#include "task/synthetic_source.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

Tokenizer Load() {
  Result<Tokenizer> tokenizer = Tokenizer::Parse(CharacterTokenizerJson());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *std::move(tokenizer);
}

TEST(CharacterTokenizerTest, EveryTextOfEveryTaskComesBack) {
  const Tokenizer tokenizer = Load();
  TaskOptions options;
  for (const TaskKind kind : {TaskKind::kListSum, TaskKind::kArithmetic}) {
    options.kind = kind;
    const auto task = MakeSyntheticTask(options);
    ASSERT_TRUE(task.ok());
    for (uint64_t index = 0; index < 500; ++index) {
      const Exercise exercise = (*task)->At(Purpose::kSupervised, 1, index);
      const std::string text = exercise.prompt + exercise.Worked();
      const auto ids = tokenizer.Encode(text, /*add_special_tokens=*/true);
      ASSERT_TRUE(ids.ok()) << ids.status().message();
      ASSERT_EQ(ids->size(), text.size() - kAnswerMarker.size() + 1);
      ASSERT_EQ(tokenizer.Decode(*ids, /*skip_special=*/true), text);
      ASSERT_EQ(tokenizer.Decode(*ids), text);
    }
  }
}

TEST(CharacterTokenizerTest, IdsAreThoseOfTheHeader) {
  const Tokenizer tokenizer = Load();
  EXPECT_EQ(tokenizer.num_ids(), kNumCharacterTokens);
  EXPECT_EQ(tokenizer.Find(kPadToken), kPadTokenId);
  EXPECT_EQ(tokenizer.Find(kEndToken), kEndTokenId);
  EXPECT_EQ(tokenizer.Find(kAnswerMarker), kAnswerMarkerId);
  for (size_t i = 0; i < kTaskCharacters.size(); ++i) {
    EXPECT_EQ(tokenizer.Find(kTaskCharacters.substr(i, 1)),
              kFirstCharacterId + static_cast<TokenId>(i));
  }
  EXPECT_EQ(*tokenizer.Encode("1+2=#### 3<eos>"),
            (std::vector<TokenId>{4, 13, 5, 16, 2, 6, kEndTokenId}));
  EXPECT_TRUE(tokenizer.IsSpecial(kEndTokenId));
  EXPECT_FALSE(tokenizer.IsSpecial(kAnswerMarkerId));
}

TEST(CharacterTokenizerTest, TheEndTokenIsLeftOutOfWhatIsVerified) {
  const std::vector<TokenId> ids = {4, 13, 5, 16, 2, 6, kEndTokenId, kPadTokenId};
  EXPECT_EQ(Load().Decode(ids, /*skip_special=*/true), "1+2=#### 3");
}

TEST(CharacterTokenizerTest, ForeignCharactersAreAnError) {
  for (const char* text : {"1 + 2", "a", "#", "####", "é"}) {
    EXPECT_FALSE(Load().Encode(text).ok()) << text;
  }
}

}  // namespace
}  // namespace pace
