// A chat in the terminal: lines from stdin, replies on stdout as they come.
//
// Ctrl-C stops a reply and not the program; Ctrl-D ends. Words, and the speed
// after each reply, go to stderr.
#ifndef PACE_INFERENCE_CHAT_H_
#define PACE_INFERENCE_CHAT_H_

#include <string>

#include "core/status.h"
#include "inference/generation.h"
#include "inference/ready_model.h"

namespace pace {

struct ChatOptions {
  GenerationOptions generation;
  std::string system;  // empty = none
};

Status RunChat(const ChatOptions& options, ModelTexts& texts, ReadyModel model);

}  // namespace pace

#endif  // PACE_INFERENCE_CHAT_H_
