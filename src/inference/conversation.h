// Conversation: the tokens of a chat, turn by turn.
//
// The history is tokens, and each turn adds the tokens of its own text, so generated tokens are
// never re-tokenized. With a chat template the new text is the part of the rendered conversation
// after the last reply. If the template renders earlier turns differently (for example, it drops
// their thoughts), there is no such part; the whole conversation is then rendered and tokenized
// again, and Prompt::retokenized is set. Without a template all lines form one text.
// Thread-safety: none.
#ifndef PACE_INFERENCE_CONVERSATION_H_
#define PACE_INFERENCE_CONVERSATION_H_

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "inference/generate_lines.h"
#include "inference/ready_model.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"
#include "text/value.h"

namespace pace {

class Conversation {
 public:
  // `system` may be empty; it needs a template. `variables` are the template's.
  Conversation(Tokenizer tokenizer, std::optional<ChatTemplate> chat, std::string system,
               ValueDict variables = {});

  struct Prompt {
    std::vector<TokenId> tokens;
    bool retokenized = false;
  };
  // All tokens that the reply to this message continues. The message counts once
  // Reply follows.
  Result<Prompt> Say(const std::string& text);

  // What came of the last prompt. `ended`: the last token is one that ends a
  // response, not part of its text.
  void Reply(const Prompt& prompt, std::span<const TokenId> tokens, bool ended);

  // Back to the beginning; the system message stays.
  void Reset();

 private:
  struct Message {
    std::string role;
    std::string content;
  };

  Result<std::string> Render(std::span<const Message> messages) const;
  Result<Prompt> SayWithTemplate();
  Result<Prompt> SayPlainly(const std::string& text) const;
  // The rendering's text after the last reply, without the token that ended it;
  // none if the rendering does not contain the turns as they were.
  std::optional<std::string> NewText(const std::string& rendered) const;

  const Tokenizer tokenizer_;
  const std::optional<ChatTemplate> chat_;
  const std::string system_;
  const ValueDict variables_;
  std::vector<Message> messages_;
  std::optional<Message> said_;   // by the last Say
  std::vector<TokenId> tokens_;   // up to the end of the last reply
  std::string rendered_;          // of the last prompt
  std::string pending_rendered_;  // of the prompt that Say made
  std::string reply_;             // the text of the last reply
  std::string ending_;            // of the token that ended it; empty if none did
};

// A chat in the terminal: lines from stdin, replies on stdout as they come.
//
// Ctrl-C stops a reply and not the program; Ctrl-D ends. Words, and the speed
// after each reply, go to stderr.
struct ChatOptions {
  GenerationOptions generation;
  std::string system;  // empty = none
};

Status RunChat(const ChatOptions& options, ModelTexts& texts, ReadyModel model);

}  // namespace pace

#endif  // PACE_INFERENCE_CONVERSATION_H_
