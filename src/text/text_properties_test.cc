// What holds for every text, id, value and template, tried on random ones.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/utf8.h"
#include "text/characters.h"
#include "text/chat_template.h"
#include "text/hermes.h"
#include "text/python_text.h"
#include "text/tokenizer/tokenizer.h"
#include "text/truncation.h"

namespace pace {
namespace {

constexpr uint64_t kNumRounds = 300;

// Random choices in one sequence.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed, 0x74657874) {}

  uint64_t Below(uint64_t count) { return random_.Bits(next_++) % count; }
  bool OneIn(uint64_t count) { return Below(count) == 0; }
  template <typename List>
  const auto& Pick(const List& list) {
    return list[Below(std::size(list))];
  }

 private:
  CounterRandom random_;
  uint64_t next_ = 0;
};

// Letters of several scripts, marks, space and signs; never half a surrogate pair.
std::string RandomText(Dice& dice, uint64_t max_characters) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x20, 0x7E},     {0x20, 0x7E},     {0x61, 0x7A},        {0x9, 0xD},       {0x80, 0x24F},
      {0x300, 0x36F},   {0x370, 0x3FF},   {0x5D0, 0x5EA},      {0x915, 0x939},   {0x1100, 0x11FF},
      {0x2000, 0x2044}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3},    {0xFB00, 0xFB06}, {0x1F300, 0x1F64F},
      {0xE000, 0xFFFD}, {0x0, 0x1F},      {0x10FFF0, 0x10FFFF}};
  std::string text;
  for (uint64_t i = dice.Below(max_characters + 1); i > 0; --i) {
    const auto& [low, high] = dice.Pick(kRanges);
    AppendCodePoint(text, low + static_cast<uint32_t>(dice.Below(high - low + 1)));
  }
  return text;
}

std::string RandomBytes(Dice& dice, uint64_t max_bytes) {
  std::string bytes;
  for (uint64_t i = dice.Below(max_bytes + 1); i > 0; --i) {
    // Lead and continuation bytes often, so that characters begin and break.
    constexpr unsigned char kLikely[] = {'a', ' ', 0x80, 0xBF, 0xC3, 0xE2, 0x96, 0x81, 0xF0, 0x9F};
    bytes += static_cast<char>(dice.OneIn(3) ? dice.Below(256) : dice.Pick(kLikely));
  }
  return bytes;
}

Tokenizer Golden(const std::string& name) {
  Result<Tokenizer> tokenizer = Tokenizer::Load(PACE_SOURCE_DIR "/tests/golden/tokenizers/" + name);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *tokenizer;
}

std::vector<TokenId> Joined(std::vector<TokenId> ids, const std::vector<TokenId>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

TEST(TokenizerPropertyTest, BytesKeepEveryText) {
  const Tokenizer tokenizer = Golden("digits");
  Dice dice(1);
  for (uint64_t round = 0; round < kNumRounds; ++round) {
    const std::string text = RandomText(dice, 40);
    EXPECT_EQ(tokenizer.Decode(*tokenizer.Encode(text)), text);
    const std::string bytes = RandomBytes(dice, 40);
    EXPECT_EQ(tokenizer.Decode(*tokenizer.Encode(bytes)), ReplaceIllFormed(bytes));
  }
}

TEST(TokenizerPropertyTest, ANormalFormIsAllThatIsLost) {
  const Tokenizer tokenizer = Golden("nfc");
  Dice dice(2);
  for (uint64_t round = 0; round < kNumRounds; ++round) {
    const std::string text = RandomText(dice, 40);
    const std::vector<TokenId> ids = *tokenizer.Encode(text);
    EXPECT_EQ(tokenizer.Decode(ids), Normalize(text, NormalForm::kNfc));
    EXPECT_EQ(*tokenizer.Encode(tokenizer.Decode(ids)), ids);
  }
}

TEST(TokenizerPropertyTest, ByteFallbackKeepsEveryText) {
  const Tokenizer tokenizer = Golden("sentencepiece");
  Dice dice(3);
  for (uint64_t round = 0; round < kNumRounds; ++round) {
    const std::string text = RandomText(dice, 40);
    EXPECT_EQ(tokenizer.Decode(*tokenizer.Encode(text)), text);
  }
}

TEST(TokenizerPropertyTest, AnAddedTokenCutsTheText) {
  const Tokenizer tokenizer = Golden("digits");
  const TokenId stop = *tokenizer.Find("<|stop|>");
  Dice dice(4);
  for (uint64_t round = 0; round < kNumRounds; ++round) {
    const std::string before = RandomText(dice, 20);
    const std::string after = RandomText(dice, 20);
    EXPECT_EQ(*tokenizer.Encode(before + "<|stop|>" + after),
              Joined(Joined(*tokenizer.Encode(before), {stop}), *tokenizer.Encode(after)));
  }
}

TEST(TokenizerPropertyTest, AStreamGivesTheWholeDecode) {
  Dice dice(5);
  for (const char* name : {"nfc", "digits", "prefix_space", "sentencepiece", "metaspace"}) {
    const Tokenizer tokenizer = Golden(name);
    for (uint64_t round = 0; round < kNumRounds; ++round) {
      const bool skip_special = dice.OneIn(2);
      std::vector<TokenId> ids = *tokenizer.Encode(RandomText(dice, 12));
      for (uint64_t i = dice.Below(6); i > 0; --i) {
        const auto at = static_cast<std::ptrdiff_t>(dice.Below(ids.size() + 1));
        const auto id =
            static_cast<TokenId>(dice.Below(static_cast<uint64_t>(tokenizer.num_ids())));
        ids.insert(ids.begin() + at, id);
      }
      StreamDecoder stream(tokenizer, skip_special);
      std::string streamed;
      for (const TokenId id : ids) {
        const std::string part = stream.Feed(id).value_or("");
        EXPECT_TRUE(IsWellFormed(part)) << name;
        streamed += part;
      }
      EXPECT_EQ(streamed + stream.Finish(), tokenizer.Decode(ids, skip_special)) << name;
    }
  }
}

// A value as JSON has them; `literals` leaves out what a template cannot write.
Value RandomValue(Dice& dice, int depth, bool literals) {
  switch (dice.Below(depth > 0 ? 9 : 6)) {
    case 0:
      return Value::MakeNone();
    case 1:
      return Value(dice.OneIn(2));
    case 2:
      return Value(static_cast<int64_t>(dice.Below(~uint64_t{0})) >> dice.Below(64));
    case 3:
      return Value(static_cast<double>(dice.Below(1u << 20)) *
                   std::pow(10.0, static_cast<double>(dice.Below(40)) - 20.0));
    case 4:
      return literals ? Value(std::string()) : Value::MakeBigInteger("-98765432109876543210");
    case 5:
      return Value(RandomText(dice, 8));
    case 6:
    case 7: {
      ValueList items;
      for (uint64_t i = dice.Below(4); i > 0; --i) {
        items.push_back(RandomValue(dice, depth - 1, literals));
      }
      return Value::MakeList(std::move(items));
    }
    default: {
      ValueDict items;
      for (uint64_t i = dice.Below(4); i > 0; --i) {
        items.Put(RandomText(dice, 4), RandomValue(dice, depth - 1, literals));
      }
      return Value::MakeDict(std::move(items));
    }
  }
}

TEST(PythonTextPropertyTest, JsonReadsBack) {
  Dice dice(6);
  for (uint64_t round = 0; round < kNumRounds; ++round) {
    const Value value = RandomValue(dice, 4, false);
    const std::string written = *ToPythonJson(value);
    JsonStyle styles[3];
    styles[0].ensure_ascii = true;
    styles[1].indent = "\t";
    styles[2].item_separator = ",";
    styles[2].key_separator = ":";
    for (const JsonStyle& style : styles) {
      const std::string other = *ToPythonJson(value, style);
      const Result<Value> back = ParsePythonJson(other);
      ASSERT_TRUE(back.ok()) << other << back.status().message();
      EXPECT_EQ(*ToPythonJson(*back), written);
      EXPECT_EQ(*PythonRepr(*back, 1 << 20), *PythonRepr(value, 1 << 20));
    }
    const std::string ascii = *ToPythonJson(value, styles[0]);
    for (const char c : ascii) EXPECT_TRUE(c >= ' ' && c <= '~') << ascii;
  }
}

TEST(PythonTextPropertyTest, RandomBytesAreReadOrRefused) {
  Dice dice(7);
  constexpr std::string_view kSigns = "{}[]\",:0123456789.eE+-truefalsn\\u \n\xC3\xA9";
  for (uint64_t round = 0; round < 10 * kNumRounds; ++round) {
    std::string text;
    for (uint64_t i = dice.Below(30); i > 0; --i) text += dice.Pick(kSigns);
    const Result<Value> value = ParsePythonJson(text);
    if (!value.ok()) {
      EXPECT_EQ(value.status().message().find('\n'), std::string::npos) << text;
      continue;
    }
    const std::string written = *ToPythonJson(*value);
    EXPECT_EQ(*ToPythonJson(*ParsePythonJson(written)), written);
  }
}

TEST(PythonTextPropertyTest, RealsReadBackToTheBit) {
  Dice dice(8);
  for (uint64_t round = 0; round < 10 * kNumRounds; ++round) {
    const double value = std::bit_cast<double>(dice.Below(~uint64_t{0}));
    if (!std::isfinite(value)) continue;
    const Result<Value> back = ParsePythonJson(PythonReal(value));
    ASSERT_TRUE(back.ok() && back->is_real()) << PythonReal(value);
    EXPECT_EQ(std::bit_cast<uint64_t>(back->real()), std::bit_cast<uint64_t>(value));
  }
}

std::string RenderOrError(const std::string& source, const ChatInputs& inputs = {}) {
  const Result<ChatTemplate> chat = ChatTemplate::Parse(source);
  const Result<std::string> text = chat.ok() ? chat->Render(inputs) : chat.status();
  if (text.ok()) return *text;
  EXPECT_EQ(text.status().message().find('\n'), std::string::npos) << source;
  return text.status().message();
}

TEST(ChatTemplatePropertyTest, ALiteralPrintsAsPythonWritesIt) {
  Dice dice(9);
  for (uint64_t round = 0; round < kNumRounds; ++round) {
    const Value value = RandomValue(dice, 3, true);
    if (value.is_text()) continue;  // printed without quotes
    const std::string repr = *PythonRepr(value, 1 << 20);
    EXPECT_EQ(RenderOrError("{{ " + repr + " }}"), repr);
  }
}

TEST(ChatTemplatePropertyTest, RandomTemplatesRenderOrAreRefusedInOneLine) {
  Dice dice(10);
  const std::vector<std::string> pieces = {"{{",         "}}",       "{%",         "%}",
                                           "{#",         "#}",       "-%}",        "{%-",
                                           "if",         "for x in", "x",          "endif",
                                           "endfor",     "set",      "=",          "else",
                                           "'a'",        "1",        "2.5",        "[",
                                           "]",          "(",        ")",          "|",
                                           "join",       "tojson",   "loop.index", ".split(' ')",
                                           "range(9)",   "~",        "+",          "*",
                                           "-",          "[::-1]",   "is defined", "not",
                                           "and",        "messages", "\n",         " ",
                                           "macro m(x)", "endmacro", "m(1)",       "namespace(a=1)",
                                           "{",          "}",        ":",          ",",
                                           "\xC3\xA9"};
  ChatInputs inputs;
  inputs.messages = *ParsePythonJson(R"([{"role": "user", "content": "a b"}])");
  uint64_t num_rendered = 0;
  for (uint64_t round = 0; round < 10 * kNumRounds; ++round) {
    std::string source = dice.OneIn(2) ? "{{ " : "";
    for (uint64_t i = dice.Below(12); i > 0; --i) source += dice.Pick(pieces) + " ";
    if (source.starts_with("{{ ")) source += "}}";
    num_rendered += RenderOrError(source, inputs).starts_with("chat template: ") ? 0 : 1;
  }
  EXPECT_GT(num_rendered, kNumRounds / 4);
}

// Each would take minutes to years if its cost were not counted, or were not in proportion to
// its inputs; the guard against a hang is ctest's.
TEST(ChatTemplatePropertyTest, WorkIsBounded) {
  ChatInputs inputs;
  std::string words;
  for (int i = 0; i < 100'000; ++i) words += "a ";
  inputs.extra.Put("words", Value(words));
  inputs.extra.Put("text", Value(std::string(500'000, 'a')));
  inputs.extra.Put("needle", Value(std::string(250'000, 'a') + "b"));
  EXPECT_EQ(RenderOrError("{{ words.split() | length }}", inputs), "100000");
  EXPECT_EQ(RenderOrError("{{ words.split(none, 2)[:2] }}", inputs), "['a', 'a']");
  EXPECT_EQ(RenderOrError("{{ text.strip(needle) | length }}", inputs), "0");
  EXPECT_EQ(RenderOrError("{{ text.find('b') }}{{ text.count('aaaa') }}", inputs), "-1125000");
  for (const char* source :
       {"{{ text.find(needle) }}", "{{ text.rfind(needle) }}", "{{ text.count(needle) }}",
        "{{ text.split(needle) }}", "{{ text.rsplit(needle, 1) }}", "{{ needle in text }}",
        "{{ text.replace(needle, '') }}", "{{ text.replace('', needle) }}",
        "{{ text | join(text) }}", "{{ text * 1000 }}",
        "{% set n = namespace(x=text) %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}"
        "{% endfor %}"}) {
    const std::string error = RenderOrError(source, inputs);
    EXPECT_NE(error.find("the template does too much work"), std::string::npos)
        << source << ": " << error.substr(0, 100);
  }
}

TEST(TruncationPropertyTest, KeepsTheBoundAndBothEnds) {
  Dice dice(11);
  for (uint64_t round = 0; round < kNumRounds; ++round) {
    const std::string text = RandomText(dice, 60);
    const auto bound = static_cast<int64_t>(2 + dice.Below(50));
    const auto length = static_cast<int64_t>(CountCodePoints(text));
    const std::string left = TruncateToolResponse(text, bound, TruncationSide::kLeft);
    const std::string right = TruncateToolResponse(text, bound, TruncationSide::kRight);
    const std::string middle = TruncateToolResponse(text, bound, TruncationSide::kMiddle);
    if (length <= bound) {
      EXPECT_EQ(left, text);
      EXPECT_EQ(right, text);
      EXPECT_EQ(middle, text);
      continue;
    }
    const auto characters = static_cast<size_t>(bound);
    EXPECT_EQ(CountCodePoints(left), characters + std::string_view("(truncated)...").size());
    EXPECT_EQ(CountCodePoints(right), characters + std::string_view("...(truncated)").size());
    EXPECT_EQ(CountCodePoints(middle),
              characters / 2 * 2 + std::string_view("...(truncated)...").size());
    EXPECT_TRUE(text.ends_with(left.substr(std::string_view("(truncated)...").size())));
    EXPECT_TRUE(right.starts_with(text.substr(0, OffsetOfCodePoint(text, characters))));
  }
}

TEST(HermesPropertyTest, ACallLeavesTheTextAroundItAlone) {
  Dice dice(12);
  for (uint64_t round = 0; round < kNumRounds; ++round) {
    const std::string before = RandomText(dice, 20);
    const std::string after = RandomText(dice, 20);
    EXPECT_EQ(ParseHermes(before).content, before);
    ValueDict call;
    const std::string name = RandomText(dice, 6);
    const Value arguments = RandomValue(dice, 3, false);
    call.Put("name", Value(name));
    call.Put("arguments", arguments);
    const std::string body = *ToPythonJson(Value::MakeDict(call));
    const HermesMessage message =
        ParseHermes(before + "<tool_call>\n" + body + "\n</tool_call>" + after);
    EXPECT_EQ(message.content, before + after);
    ASSERT_EQ(message.calls.size(), 1U) << body;
    EXPECT_EQ(message.calls[0].name, name);
    EXPECT_EQ(message.calls[0].arguments, *ToPythonJson(arguments));
  }
}

}  // namespace
}  // namespace pace
