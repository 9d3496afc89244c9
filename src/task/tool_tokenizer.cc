#include "task/tool_tokenizer.h"

#include "task/character_vocabulary.h"
#include "task/code_interpreter.h"

namespace pace {
namespace {

constexpr std::string_view kUnknown = "<unk>";
// Newline, then what ASCII can show.
constexpr std::string_view kCharacters =
    "\n !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
    "abcdefghijklmnopqrstuvwxyz{|}~";
constexpr size_t kNumWholeTokens = 10;
static_assert(kNumWholeTokens + kCharacters.size() == kNumToolTokens);

}  // namespace

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
