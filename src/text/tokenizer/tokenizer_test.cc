#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "core/utf8.h"

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

// A Llama-like file: <0x..> for every byte from id 10, "▁a" and "ab" join.
std::string SentencePieceFile(const std::string& rest) {
  std::string vocab =
      R"("<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3, "a": 4, "b": 5, "▁a": 6, "ab": 7)";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    vocab += Concat(", \"<0x", kHex[byte >> 4], kHex[byte & 15], ">\": ", byte + 10);
  }
  return File(R"({"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
      "vocab": {)" +
                  vocab + R"(}, "merges": ["▁ a", "a b"]})",
              R"([{"id": 1, "content": "<s>", "special": true, "normalized": false},
                  {"id": 2, "content": "</s>", "special": true, "normalized": false}])",
              rest);
}

const char* const kLlama =
    R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
          {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
       "decoder": {"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
          {"type": "ByteFallback"}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";

TokenId ByteToken(unsigned char byte) {
  return byte + 10;
}

TEST(SentencePieceTest, SpacesAreLettersAndUnknownCharactersAreBytes) {
  const Tokenizer tokenizer = Make(SentencePieceFile(kLlama));
  EXPECT_EQ(*tokenizer.Encode("a ab"), Ids({6, 6, 5}));
  EXPECT_EQ(*tokenizer.Encode("b<s>b"), Ids({3, 5, 1, 3, 5}));
  EXPECT_EQ(*tokenizer.Encode("é"), Ids({3, ByteToken(0xC3), ByteToken(0xA9)}));
  EXPECT_EQ(*tokenizer.Encode(""), Ids({}));
}

TEST(SentencePieceTest, OneByteThatIsWrongSpoilsItsWholeRun) {
  const Tokenizer tokenizer = Make(SentencePieceFile(kLlama));
  const TokenId first = ByteToken(0xC3);
  const TokenId second = ByteToken(0xA9);
  EXPECT_EQ(tokenizer.Decode(Ids{6, first, second, 5}), "aéb");
  const std::string three = "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";
  EXPECT_EQ(tokenizer.Decode(Ids{first, second, first, 5}), three + "b");
  // A token between them ends the run.
  EXPECT_EQ(tokenizer.Decode(Ids{first, second, 5, first}), "éb\xEF\xBF\xBD");
}

TEST(SentencePieceTest, StripTakesTheFirstSpaceOfTheTextAlone) {
  const Tokenizer tokenizer = Make(SentencePieceFile(kLlama));
  EXPECT_EQ(tokenizer.Decode(Ids{6, 6}), "a a");
  EXPECT_EQ(tokenizer.Decode(Ids{3, 3, 6}), "  a");
  EXPECT_EQ(tokenizer.Decode(Ids{1, 6}, true), "a");
  EXPECT_EQ(tokenizer.Decode(Ids{ByteToken(' '), 6}), " a");
}

TEST(SentencePieceTest, MetaspaceMarksWordsAndDropsTheFirstMark) {
  const std::string metaspace =
      R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true})";
  const Tokenizer tokenizer =
      Make(SentencePieceFile(R"("pre_tokenizer": )" + metaspace + R"(, "decoder": )" + metaspace));
  EXPECT_EQ(*tokenizer.Encode("a ab<s>a"), Ids({6, 6, 5, 1, 4}));
  EXPECT_EQ(*tokenizer.Encode(" a"), Ids({6}));
  EXPECT_EQ(tokenizer.Decode(Ids{6, 6, 5}), "a ab");
}

// Whatever the decoder, all that a stream hands out is the decode of all ids,
// and each part is whole characters.
TEST(StreamDecoderTest, GivesTheWholeDecodeForEveryDecoder) {
  const std::vector<std::string> files = {
      SentencePieceFile(kLlama),
      SentencePieceFile(R"("decoder": {"type": "Metaspace", "replacement": "▁"})"),
      SentencePieceFile(R"("decoder": {"type": "ByteFallback"})"),
      SentencePieceFile(R"("pre_tokenizer": null)"),
      File(kModel, kAdded, kByteLevel),
  };
  const CounterRandom random(7, 1);
  for (size_t file = 0; file < files.size(); ++file) {
    const Tokenizer tokenizer = Make(files[file]);
    for (uint64_t round = 0; round < 400; ++round) {
      const bool skip_special = random.Bits(round, 0) % 2 == 0;
      StreamDecoder stream(tokenizer, skip_special);
      Ids ids;
      std::string streamed;
      for (uint64_t i = 0; i < random.Bits(round, 1) % 20; ++i) {
        // Bytes of é and other letters come often, so that characters are whole.
        const uint64_t bits = random.Bits(round, 2 + i);
        const TokenId likely[] = {ByteToken(0xC3), ByteToken(0xA9), 3, 6, 7, 8};
        ids.push_back(bits % 3 == 0 ? static_cast<TokenId>(bits / 3 % 280)
                                    : likely[bits / 3 % std::size(likely)]);
        const std::string part = stream.Feed(ids.back()).value_or("");
        EXPECT_TRUE(IsWellFormed(part));
        streamed += part;
      }
      streamed += stream.Finish();
      EXPECT_EQ(streamed, tokenizer.Decode(ids, skip_special)) << "file " << file;
    }
  }
}

TEST(SentencePieceTest, RefusesOrdersThatCannotBeStreamed) {
  const auto decoder = [](const std::string& parts) {
    return ErrorOf(
        SentencePieceFile(R"("decoder": {"type": "Sequence", "decoders": [)" + parts + "]}"));
  };
  const std::string strip = R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})";
  EXPECT_EQ(decoder(strip), "decoder.decoders[0].type = Strip: is supported once, behind Fuse");
  EXPECT_EQ(decoder(R"({"type": "Fuse"}, {"type": "ByteFallback"})"),
            "decoder.decoders[1].type = ByteFallback: must come before Fuse and ByteLevel, once");
  EXPECT_EQ(
      decoder(R"({"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 0, "stop": 1})"),
      "decoder.decoders[1].stop = 1: is not supported (must be 0)");
  EXPECT_EQ(decoder(R"({"type": "WordPiece"})"),
            "decoder.decoders[0].type = WordPiece: is not supported");
  EXPECT_EQ(ErrorOf(SentencePieceFile(
                R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}]})")),
            "pre_tokenizer.pretokenizers[1].prepend_scheme = first: is not supported behind "
            "another step");
}

TEST(TokenizerTest, RefusesByName) {
  EXPECT_EQ(ErrorOf(File(kModel, "[]", R"("pre_tokenizer": {"type": "Whitespace"})")),
            "pre_tokenizer.type = Whitespace: is not supported");
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
