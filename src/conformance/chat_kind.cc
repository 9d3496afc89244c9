// `chat`: conversations rendered and encoded.
#include <filesystem>

#include "conformance/case_file.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

Result<ChatTemplate> LoadTemplate(const KindArguments& arguments, const std::string& path) {
  if (!arguments.chat_template.empty()) return ChatTemplate::LoadFile(arguments.chat_template);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  // A folder may hold a template of its own beside another's tokenizer.
  Result<ChatTemplate> own = ChatTemplate::Load(folder.empty() ? "." : folder);
  if (own.ok() || arguments.tokenizer.empty()) return own;
  return ChatTemplate::Load(arguments.tokenizer);
}

// Every field of a case that is not part of the form is a variable.
ChatInputs InputsOf(const Value& entry) {
  ChatInputs inputs;
  for (const auto& [name, value] : entry.dict().entries()) {
    if (name == "messages") {
      inputs.messages = value;
    } else if (name == "tools") {
      if (!value.is_none()) inputs.tools = value;
    } else if (name == "add_generation_prompt") {
      inputs.add_generation_prompt = value.Truthy();
    } else if (name != "name" && name != "rendered" && name != "ids" && name != "error") {
      inputs.extra.Put(name, value);
    }
  }
  return inputs;
}

Status CheckCase(const Value& entry, const std::string& where, const ChatTemplate& chat,
                 const Tokenizer& tokenizer, Tally& tally) {
  const Result<std::string> text = chat.Render(InputsOf(entry));
  if (FieldOf(entry, "error").Truthy()) {
    text.ok() ? tally.Fail(Concat(where, ": rendered, expected an error")) : tally.Pass();
    return Status::Ok();
  }
  if (!text.ok()) {
    tally.Fail(Concat(where, ": ", text.status().message()));
    return Status::Ok();
  }
  PACE_ASSIGN_OR_RETURN(const std::string rendered, TextField(entry, "rendered", where));
  CompareText(tally, where, "rendered", *text, rendered);
  if (FieldOf(entry, "ids").is_undefined()) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> expected, IdsField(entry, "ids", where));
  const Result<std::vector<TokenId>> ids = tokenizer.Encode(*text);
  if (!ids.ok()) return ids.status().At(where);
  CompareText(tally, where, "ids", JoinIds(*ids), JoinIds(expected));
  return Status::Ok();
}

}  // namespace

Status CheckChat(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) {
    PACE_ASSIGN_OR_RETURN(const Value file, ReadCaseFile(path));
    PACE_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                          Tokenizer::Load(TokenizerFolder(arguments, path)));
    PACE_ASSIGN_OR_RETURN(const ChatTemplate chat, LoadTemplate(arguments, path));
    PACE_RETURN_IF_ERROR(CheckCases(
        path, file, tally, [&](const Value& entry, const std::string& where, Tally& counts) {
          return CheckCase(entry, where, chat, tokenizer, counts);
        }));
  }
  return Status::Ok();
}

}  // namespace pace
