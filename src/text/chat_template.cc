#include "text/chat_template.h"

#include <filesystem>

#include "core/file.h"
#include "core/printable.h"
#include "core/utf8.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/parser.h"
#include "text/python_text.h"

namespace pace {
namespace {

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
constexpr size_t kMaxConfigBytes = size_t{64} << 20;

// Errors are one line; a template may raise any text.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

Status ErrorOf(const jinja::TemplateError& error) {
  return InvalidArgument("chat template: line ", error.position.line, ", column ",
                         error.position.column, ": ", OneLine(error.what()));
}

// A token is a text, or an object with its content.
const Value* ContentOf(const Value& token) {
  if (token.is_text()) return &token;
  return token.is_dict() ? token.dict().Find("content") : nullptr;
}

// A config may hold several templates by name; "default" is meant.
const Value* TemplateIn(const ValueDict& config) {
  const Value* found = config.Find("chat_template");
  if (found == nullptr || !found->is_list()) return found;
  for (const Value& entry : found->list()) {
    const Value* name = entry.is_dict() ? entry.dict().Find("name") : nullptr;
    if (name == nullptr || !name->is_text() || name->text() != "default") continue;
    return entry.dict().Find("template");
  }
  return nullptr;
}

}  // namespace

struct ChatTemplate::State {
  jinja::Body body;
  ValueDict variables;  // from the config
};

Result<ChatTemplate> ChatTemplate::Parse(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return InvalidArgument("chat template: larger than ", kMaxTemplateBytes, " bytes");
  }
  if (!IsWellFormed(source)) return InvalidArgument("chat template: must be UTF-8");
  try {
    auto state = std::make_shared<State>();
    state->body = jinja::Parse(source);
    return ChatTemplate(std::move(state));
  } catch (const jinja::TemplateError& error) {
    return ErrorOf(error);
  }
}

Result<ChatTemplate> ChatTemplate::LoadFile(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(const std::string source, ReadFile(path, kMaxTemplateBytes));
  Result<ChatTemplate> parsed = Parse(source);
  if (!parsed.ok()) return parsed.status().At(path);
  return parsed;
}

Result<ChatTemplate> ChatTemplate::Load(const std::string& directory) {
  const std::filesystem::path folder(directory);
  const std::string beside = (folder / "chat_template.jinja").string();
  const std::string config_path = (folder / "tokenizer_config.json").string();
  const bool has_file = Files::Default().Exists(beside);
  if (has_file && !Files::Default().Exists(config_path)) return LoadFile(beside);
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(config_path, kMaxConfigBytes));
  const Result<Value> config = ParsePythonJson(text);
  if (!config.ok()) return config.status().At(config_path);
  if (!config->is_dict()) return InvalidArgument(config_path, ": must be an object");
  const Value* source = TemplateIn(config->dict());
  if (!has_file && (source == nullptr || !source->is_text())) {
    return NotFound(config_path, ": chat_template: must be a text (or put chat_template.jinja ",
                    "beside it)");
  }
  Result<ChatTemplate> parsed = has_file ? LoadFile(beside) : Parse(source->text());
  if (!parsed.ok()) return has_file ? parsed.status() : parsed.status().At(config_path);
  auto state = std::const_pointer_cast<State>(parsed->state_);
  for (const auto& [name, value] : config->dict().entries()) {
    const Value* content = name.ends_with("_token") ? ContentOf(value) : nullptr;
    if (content != nullptr && content->is_text()) state->variables.Put(name, *content);
  }
  return parsed;
}

Result<std::string> ChatTemplate::Render(const ChatInputs& inputs) const {
  ValueDict variables = state_->variables;
  variables.Put("messages", inputs.messages);
  variables.Put("tools", inputs.tools.value_or(Value::MakeNone()));
  variables.Put("documents", Value::MakeNone());
  variables.Put("add_generation_prompt", Value(inputs.add_generation_prompt));
  for (const auto& [name, value] : inputs.extra.entries()) variables.Put(name, value);
  try {
    return jinja::Evaluator(std::move(variables), inputs.now).Run(state_->body);
  } catch (const jinja::TemplateError& error) {
    return ErrorOf(error);
  }
}

}  // namespace pace
