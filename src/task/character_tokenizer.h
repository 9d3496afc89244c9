// The tokenizer of generated tasks: one token per character, one for the answer
// marker, one for the end, in the tokenizer.json form that every model uses.
//
//   Result<Tokenizer> tokenizer = Tokenizer::Parse(CharacterTokenizerJson());
//
// Any other character is an error rather than an unknown token: it could not
// come from these tasks. Ids never change: base models rely on them.
//
// Thread-safety: functions without state.
#ifndef PACE_TASK_CHARACTER_TOKENIZER_H_
#define PACE_TASK_CHARACTER_TOKENIZER_H_

#include <string>
#include <string_view>

#include "core/token_id.h"

namespace pace {

inline constexpr std::string_view kPadToken = "<pad>";
inline constexpr std::string_view kEndToken = "<eos>";
inline constexpr TokenId kPadTokenId = 0;
inline constexpr TokenId kEndTokenId = 1;
// kAnswerMarker of synthetic_task.h, no special token: decoding keeps it.
inline constexpr TokenId kAnswerMarkerId = 2;
// The characters have the ids after it, in this order.
inline constexpr std::string_view kTaskCharacters = "0123456789+-*=,";
inline constexpr TokenId kFirstCharacterId = 3;
inline constexpr TokenId kNumCharacterTokens = 18;

std::string CharacterTokenizerJson();

// Tokenizer and chat template of generated tasks that use a tool: one token per character of
// ASCII, and one for each piece of the Hermes form of a conversation, which a model of this
// size should not have to spell.
//
//   Result<Tokenizer> tokenizer = Tokenizer::Parse(ToolTokenizerJson());
//   Result<ChatTemplate> chat = ChatTemplate::Parse(kToolChatTemplate);
//
// Other characters, which a program may print, become one unknown token. The template does
// not show the tool's schema: the model learns the one call there is by example.
inline constexpr TokenId kToolPadTokenId = 0;
inline constexpr TokenId kToolEndTokenId = 1;
inline constexpr TokenId kNumToolTokens = 106;

inline constexpr std::string_view kToolChatTemplate =
    "{%- for message in messages %}"
    "{%- if message.role == 'tool' %}"
    "{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}"
    "{%- else %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content }}"
    "{%- endif %}"
    "{{- '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n' }}"
    "{%- endif %}";

std::string ToolTokenizerJson();

}  // namespace pace

#endif  // PACE_TASK_CHARACTER_TOKENIZER_H_
