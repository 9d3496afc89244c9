#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "text/stream_decoder.h"

namespace pace {
namespace {

using Ids = std::vector<TokenId>;

// A file around the parts that a test is about.
std::string File(const std::string& model, const std::string& added = "[]",
                 const std::string& rest = "") {
  return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": )" + added +
         R"(, "model": )" + model + (rest.empty() ? "" : ", " + rest) + "}";
}

// Bytes a, b, c, space and the two of U+00E9; "ab" joins before "bc".
const char* const kModel =
    R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "Ġ": 6,
        "Ã": 7, "©": 8}, "merges": ["a b", ["b", "c"]]})";
const char* const kByteLevel =
    R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": true}, "decoder": {"type": "ByteLevel", "add_prefix_space": true,
        "trim_offsets": true, "use_regex": true})";
const char* const kAdded =
    R"([{"id": 20, "content": "<s>", "special": true, "normalized": false},
        {"id": 21, "content": "<s><s>", "special": false, "normalized": false},
        {"id": 22, "content": "<x>", "lstrip": true, "rstrip": true, "normalized": false}])";

Tokenizer Make(const std::string& json) {
  Result<Tokenizer> tokenizer = Tokenizer::Parse(json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *tokenizer;
}

std::string ErrorOf(const std::string& json) {
  return Tokenizer::Parse(json).status().message();
}

TEST(TokenizerTest, JoinsTheEarliestLearnedPairFirst) {
  const Tokenizer tokenizer = Make(File(kModel, "[]", kByteLevel));
  EXPECT_EQ(*tokenizer.Encode("abc"), Ids({3, 2}));
  EXPECT_EQ(*tokenizer.Encode("bcab c"), Ids({4, 3, 6, 2}));
  // Twice: the second time what was found out is used.
  EXPECT_EQ(*tokenizer.Encode("abc"), Ids({3, 2}));
}

TEST(TokenizerTest, IgnoringMergesTakesWholeWordsFirst) {
  std::string model = kModel;
  model.insert(1, R"("ignore_merges": true, )");
  EXPECT_EQ(*Make(File(model, "[]", kByteLevel)).Encode("abc"), Ids({5}));
}

TEST(TokenizerTest, LongWordsGiveWhatShortOnesGive) {
  const Tokenizer tokenizer = Make(File(kModel, "[]", kByteLevel));
  std::string text;
  Ids expected;
  for (int i = 0; i < 5000; ++i) {
    text += "abcb";
    expected.insert(expected.end(), {3, 2, 1});
  }
  // "cb" + "ab..." never join across; each "abcb" is ab, c, b.
  EXPECT_EQ(*tokenizer.Encode(text), expected);
}

TEST(TokenizerTest, TakesTheLongestAddedTokenAndStripsSpace) {
  const Tokenizer tokenizer = Make(File(kModel, kAdded, kByteLevel));
  EXPECT_EQ(*tokenizer.Encode("a<s>b<s><s>c"), Ids({0, 20, 1, 21, 2}));
  EXPECT_EQ(*tokenizer.Encode("a  <x>  b"), Ids({0, 22, 1}));
  EXPECT_EQ(*tokenizer.Encode("<s"), Ids({}));  // its bytes are not in the vocabulary
}

TEST(TokenizerTest, DecodeSkipsSpecialsAndUnknownIds) {
  const Tokenizer tokenizer = Make(File(kModel, kAdded, kByteLevel));
  const Ids ids = {20, 0, 999, -3, 21, 10, 6, 2};
  EXPECT_EQ(tokenizer.Decode(ids), "<s>a<s><s> c");
  EXPECT_EQ(tokenizer.Decode(ids, true), "a<s><s> c");
  EXPECT_EQ(tokenizer.num_ids(), 23);
  EXPECT_EQ(tokenizer.Find("<s>"), 20);
  EXPECT_EQ(tokenizer.Find("abc"), 5);
  EXPECT_FALSE(tokenizer.Find("zzz").has_value());
}

TEST(TokenizerTest, EachIllFormedPartDecodesToOneReplacement) {
  const Tokenizer tokenizer = Make(File(kModel, "[]", kByteLevel));
  EXPECT_EQ(tokenizer.Decode(Ids{7, 8}), "\xC3\xA9");
  EXPECT_EQ(tokenizer.Decode(Ids{7, 7, 8, 8, 0}),
            "\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD"
            "a");
}

TEST(StreamDecoderTest, HoldsACharacterUntilItIsWhole) {
  StreamDecoder stream(Make(File(kModel, kAdded, kByteLevel)), true);
  EXPECT_EQ(stream.Feed(0), "a");
  EXPECT_EQ(stream.Feed(7), std::nullopt);
  EXPECT_EQ(stream.Feed(20), std::nullopt);
  EXPECT_EQ(stream.Feed(8), "\xC3\xA9");
  EXPECT_EQ(stream.Feed(7), std::nullopt);
  EXPECT_EQ(stream.Finish(), "\xEF\xBF\xBD");
}

TEST(TokenizerTest, NormalFormIsAppliedBetweenAddedTokens) {
  const std::string rest = std::string(R"("normalizer": {"type": "NFC"}, )") + kByteLevel;
  const Tokenizer tokenizer = Make(
      File(R"({"type": "BPE", "vocab": {"e": 0, "Ã": 1, "©": 2, "Ì": 3, "ģ": 4}, "merges": []})",
           "[]", rest));
  EXPECT_EQ(*tokenizer.Encode("e\xCC\x81"), Ids({1, 2}));
}

TEST(TokenizerTest, CharacterTokenizerNeedsNoMerges) {
  const Tokenizer tokenizer = Make(File(
      R"({"type": "WordLevel", "vocab": {"?": 0, "1": 1, "+": 2, "é": 3}, "unk_token": "?"})", "[]",
      R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated",
          "invert": false}, "decoder": {"type": "Fuse"})"));
  EXPECT_EQ(*tokenizer.Encode("1+é1x"), Ids({1, 2, 3, 1, 0}));
  EXPECT_EQ(tokenizer.Decode(Ids{1, 2, 3}), "1+é");
}

TEST(TokenizerTest, TemplateAddsSpecialTokensOnlyWhenAsked) {
  const std::string rest = std::string(kByteLevel) +
                           R"(, "post_processor": {"type": "TemplateProcessing",
          "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
          "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [20], "tokens": ["<s>"]}}})";
  const Tokenizer tokenizer = Make(File(kModel, kAdded, rest));
  EXPECT_EQ(*tokenizer.Encode("a"), Ids({0}));
  EXPECT_EQ(*tokenizer.Encode("a", true), Ids({20, 0}));
}

TEST(TokenizerTest, IllFormedTextIsReplacedBeforeEncoding) {
  const Tokenizer tokenizer = Make(File(kModel, "[]", kByteLevel));
  EXPECT_EQ(*tokenizer.Encode("a\xFF"
                              "b"),
            *tokenizer.Encode("a\xEF\xBF\xBD"
                              "b"));
}

TEST(TokenizerTest, RefusesByName) {
  EXPECT_EQ(ErrorOf(File(kModel, "[]", R"("pre_tokenizer": {"type": "Metaspace"})")),
            "pre_tokenizer.type = Metaspace: is not supported");
  EXPECT_EQ(ErrorOf(File(kModel, "[]", R"("normalizer": {"type": "NFC", "x": 1})")),
            "normalizer.x: unknown key of NFC");
  EXPECT_EQ(ErrorOf(File(kModel, "[]", R"("colour": 1)")), "colour: unknown key");
  EXPECT_EQ(ErrorOf(File(R"({"type": "Unigram", "vocab": {}})")),
            "model.type = Unigram: must be BPE or WordLevel");
  EXPECT_NE(ErrorOf(File(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})")), "");
  EXPECT_NE(ErrorOf(File(R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})")), "");
  const std::string possessive =
      ErrorOf(File(kModel, "[]",
                   R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}+"},
          "behavior": "Isolated", "invert": false})"));
  EXPECT_NE(possessive.find("column 10: '+' behind an interval"), std::string::npos) << possessive;
}

}  // namespace
}  // namespace pace
