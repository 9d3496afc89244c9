#include "inference/conversation.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "terminal/interrupt.h"
#include "terminal/line_input.h"
#include "terminal/terminal_text.h"
#include "text/tokenizer/tokenizer.h"
#include "text/value.h"

namespace pace {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Columns of the terminal that replies go to; 0 where they go elsewhere.
size_t TerminalWidth() {
  winsize size{};
  const bool known = isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known ? size.ws_col : 0;
}

class Chat {
 public:
  Chat(const ChatOptions& options, Tokenizer tokenizer, Conversation conversation,
       std::unique_ptr<EngineCore> engine, LineInput input)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        conversation_(std::move(conversation)),
        engine_(std::move(engine)),
        input_(std::move(input)),
        is_terminal_(isatty(STDIN_FILENO) != 0) {
    input_.set_wake(interrupt_.descriptor());
  }

  Status Run() {
    std::fputs("Type a message. /help shows the commands; Ctrl-C stops a reply, Ctrl-D ends.\n",
               stderr);
    std::string line;
    for (;;) {
      if (is_terminal_) std::fputs("> ", stderr);
      PACE_ASSIGN_OR_RETURN(const LineInput::Read read, input_.Next(/*wait=*/true, line));
      if (read == LineInput::Read::kEnd) break;
      if (read == LineInput::Read::kNotYet) {
        // Ctrl-C at the prompt: the terminal has dropped the line.
        if (interrupt_.Take()) std::fputs("\n(Ctrl-D ends)\n", stderr);
        continue;
      }
      if (line == "/quit") return Status::Ok();
      if (line.starts_with('/')) {
        Command(line);
      } else if (!line.empty()) {
        PACE_RETURN_IF_ERROR(Turn(line));
      }
    }
    if (is_terminal_) std::fputc('\n', stderr);
    return Status::Ok();
  }

 private:
  void Command(const std::string& line) {
    if (line == "/reset") {
      conversation_.Reset();
      std::fputs("(a new conversation)\n", stderr);
      return;
    }
    if (line != "/help") std::fprintf(stderr, "%s: unknown command\n", line.c_str());
    std::fputs("/reset  begin a new conversation\n/help   show this\n/quit   end (or Ctrl-D)\n",
               stderr);
  }

  // One message and its reply. What is wrong with the message is said, and the
  // chat goes on; an error is the device's or the terminal's.
  Status Turn(const std::string& text) {
    interrupt_.Take();
    Result<Conversation::Prompt> prompt = conversation_.Say(text);
    if (!prompt.ok()) return Complain(prompt.status());
    Result<GroupRequest> request =
        RequestFor(OptionsFor(prompt->tokens.size()), engine_->decoder().config(),
                   /*has_tokenizer=*/true, num_turns_, prompt->tokens);
    if (!request.ok()) return Complain(request.status());
    const GroupId group = request->group;
    if (const Status status = engine_->Submit(std::move(request).value()); !status.ok()) {
      return Complain(status);
    }
    ++num_turns_;
    if (prompt->retokenized) {
      std::fputs("(the template changes earlier turns: the conversation was tokenized again)\n",
                 stderr);
    }
    PACE_ASSIGN_OR_RETURN(FinishedResponse finished, Stream({group, 0}));
    std::vector<TokenId> ids;
    for (const TokenRecord& token : finished.response.tokens) ids.push_back(token.id);
    const bool ended = finished.reason == FinishReason::kStopToken && !ids.empty();
    conversation_.Reply(*prompt, ids, ended);
    Report(prompt->tokens.size(), ids.size());
    return Status::Ok();
  }

  // A reply may be as long as it may, or as the model's positions allow.
  GenerationOptions OptionsFor(size_t num_prompt) const {
    GenerationOptions options = options_.generation;
    const int64_t room =
        engine_->decoder().config().max_positions - static_cast<int64_t>(num_prompt);
    if (options.max_tokens.has_value()) {
      options.max_tokens = std::min(*options.max_tokens, std::max<int64_t>(room, 1));
    }
    return options;
  }

  static Status Complain(const Status& status) {
    std::fprintf(stderr, "%s (/reset begins anew)\n", status.message().c_str());
    return Status::Ok();
  }

  // Shows the reply as it grows, to its end or to Ctrl-C.
  Result<FinishedResponse> Stream(MemberId id) {
    StreamDecoder decoder(tokenizer_, /*skip_special=*/true);
    WordWrap wrap(TerminalWidth());
    size_t num_shown = 0;
    const auto show = [&](const PartialResponse& response) {
      std::string text;
      for (; num_shown < response.tokens.size(); ++num_shown) {
        if (num_shown == 0) first_token_ = Clock::now();
        text += decoder.Feed(response.tokens[num_shown].id).value_or("");
      }
      return Write(wrap.Feed(text));
    };
    begin_ = Clock::now();
    first_token_ = begin_;
    std::optional<FinishedResponse> finished;
    while (!finished.has_value()) {
      PACE_ASSIGN_OR_RETURN(StepReport step, engine_->Step());
      if (!step.finished.empty()) {
        finished = std::move(step.finished.front());
      } else if (interrupt_.Take()) {
        finished = Stop(id);
      } else if (const PartialResponse* response = engine_->Peek(id)) {
        PACE_RETURN_IF_ERROR(show(*response));
      }
    }
    PACE_RETURN_IF_ERROR(show(finished->response));
    PACE_RETURN_IF_ERROR(Write(wrap.Feed(decoder.Finish()) + wrap.Finish() + "\n"));
    return *std::move(finished);
  }

  // What there is of it counts as cut off.
  FinishedResponse Stop(MemberId id) {
    FinishedResponse stopped{.id = id, .response = {}, .reason = FinishReason::kMaxTokens};
    const std::optional<GroupRequest> left = engine_->Cancel(id.group);
    if (left.has_value() && !left->resumed.empty()) stopped.response = left->resumed.front();
    return stopped;
  }

  static Status Write(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0) return Unavailable("stdout: cannot be written");
    return Status::Ok();
  }

  void Report(size_t num_prompt, size_t num_tokens) const {
    const double total = SecondsSince(begin_);
    const double reading = std::chrono::duration<double>(first_token_ - begin_).count();
    const double writing = total - reading;
    const double rate =
        num_tokens > 1 && writing > 0 ? static_cast<double>(num_tokens - 1) / writing : 0;
    std::fprintf(stderr, "[%zu tokens in, first after %.2f s; %zu tokens out, %.1f tokens/s]\n",
                 num_prompt, reading, num_tokens, rate);
  }

  const ChatOptions& options_;
  const Tokenizer tokenizer_;
  Conversation conversation_;
  std::unique_ptr<EngineCore> engine_;
  LineInput input_;
  Interrupt interrupt_;
  const bool is_terminal_;
  int64_t num_turns_ = 0;
  Clock::time_point begin_;
  Clock::time_point first_token_;
};

}  // namespace

Conversation::Conversation(Tokenizer tokenizer, std::optional<ChatTemplate> chat,
                           std::string system, ValueDict variables)
    : tokenizer_(std::move(tokenizer)),
      chat_(std::move(chat)),
      system_(std::move(system)),
      variables_(std::move(variables)) {
  Reset();
}

void Conversation::Reset() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back({"system", system_});
  said_.reset();
  tokens_.clear();
  rendered_.clear();
  reply_.clear();
  ending_.clear();
}

Result<std::string> Conversation::Render(std::span<const Message> messages) const {
  ValueList list;
  for (const Message& message : messages) {
    ValueDict dict;
    dict.Put("role", Value(message.role));
    dict.Put("content", Value(message.content));
    list.push_back(Value::MakeDict(std::move(dict)));
  }
  ChatInputs inputs;
  inputs.messages = Value::MakeList(std::move(list));
  inputs.add_generation_prompt = true;
  inputs.extra = variables_;
  return chat_->Render(inputs);
}

std::optional<std::string> Conversation::NewText(const std::string& rendered) const {
  std::string_view rest = rendered;
  for (const std::string_view part : {std::string_view(rendered_), std::string_view(reply_)}) {
    if (!rest.starts_with(part)) return std::nullopt;
    rest.remove_prefix(part.size());
  }
  // The history has that token already.
  if (!rest.starts_with(ending_)) return std::nullopt;
  return std::string(rest.substr(ending_.size()));
}

Result<Conversation::Prompt> Conversation::SayWithTemplate() {
  std::vector<Message> messages = messages_;
  messages.push_back(*said_);
  PACE_ASSIGN_OR_RETURN(pending_rendered_, Render(messages));
  Prompt prompt;
  const std::optional<std::string> text =
      tokens_.empty() ? pending_rendered_ : NewText(pending_rendered_);
  prompt.retokenized = !text.has_value();
  if (text.has_value()) prompt.tokens = tokens_;
  PACE_ASSIGN_OR_RETURN(
      const std::vector<TokenId> ids,
      tokenizer_.Encode(text.value_or(pending_rendered_), /*add_special_tokens=*/false));
  prompt.tokens.insert(prompt.tokens.end(), ids.begin(), ids.end());
  return prompt;
}

// A text that has ended is followed by the beginning of another.
Result<Conversation::Prompt> Conversation::SayPlainly(const std::string& text) const {
  const bool begins = tokens_.empty() || !ending_.empty();
  PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, tokenizer_.Encode(text, begins));
  Prompt prompt{.tokens = tokens_, .retokenized = false};
  prompt.tokens.insert(prompt.tokens.end(), ids.begin(), ids.end());
  return prompt;
}

Result<Conversation::Prompt> Conversation::Say(const std::string& text) {
  said_ = Message{"user", text};
  return chat_.has_value() ? SayWithTemplate() : SayPlainly(text);
}

void Conversation::Reply(const Prompt& prompt, std::span<const TokenId> tokens, bool ended) {
  PACE_CHECK(said_.has_value(), "a reply to nothing");
  messages_.push_back(*std::exchange(said_, std::nullopt));
  tokens_ = prompt.tokens;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  rendered_ = pending_rendered_;
  ending_.clear();
  if (ended && !tokens.empty()) {
    ending_ = tokenizer_.Decode(tokens.last(1), /*skip_special=*/false);
    tokens = tokens.first(tokens.size() - 1);
  }
  reply_ = tokenizer_.Decode(tokens, /*skip_special=*/true);
  messages_.push_back({"assistant", reply_});
}

Status RunChat(const ChatOptions& options, ModelTexts& texts, ReadyModel model) {
  if (!texts.tokenizer().ok()) return texts.tokenizer().status();
  std::optional<ChatTemplate> chat;
  if (texts.chat_template().ok()) {
    chat = *texts.chat_template();
  } else if (!options.system.empty() || !texts.variables().entries().empty()) {
    return texts.chat_template().status().At(
        "--system, --thinking and --template-variable need a chat template");
  } else if (texts.chat_template().status().code() != StatusCode::kNotFound) {
    return texts.chat_template().status();
  } else {
    std::fputs("The model has no chat template: it continues what you type.\n", stderr);
  }
  PACE_ASSIGN_OR_RETURN(LineInput input, LineInput::Open(""));
  const Tokenizer& tokenizer = *texts.tokenizer();
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> engine,
                        EngineFor(std::move(model), tokenizer, 1));
  Chat session(options, tokenizer,
               Conversation(tokenizer, std::move(chat), options.system, texts.variables()),
               std::move(engine), std::move(input));
  return session.Run();
}

}  // namespace pace
