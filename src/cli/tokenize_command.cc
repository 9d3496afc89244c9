// pace tokenize
#include <string>

#include "cli/answer_lines.h"
#include "cli/commands.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "inference/prompt_line.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

Status ReadTextLine(std::string_view line, std::string& text) {
  bool found = false;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "text") {
      found = scan.Text(text);
    } else {
      scan.Skip();
    }
  }
  scan.End();
  if (scan.ok() && !found) return InvalidArgument("needs 'text'");
  return scan.status();
}

Status ReadIdsLine(std::string_view line, std::vector<TokenId>& ids) {
  bool found = false;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() != "ids") {
      scan.Skip();
      continue;
    }
    found = true;
    ScanTokenIds(scan, ids);
  }
  scan.End();
  if (scan.ok() && !found) return InvalidArgument("needs 'ids'");
  return scan.status();
}

Status EncodeLine(const Tokenizer& tokenizer, std::string_view line, JsonWriter& json) {
  std::string text;
  PACE_RETURN_IF_ERROR(ReadTextLine(line, text));
  PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, tokenizer.Encode(text));
  json.BeginObject();
  json.Key("ids");
  json.BeginArray();
  for (const TokenId id : ids) json.Value(id);
  json.EndArray();
  json.EndObject();
  return Status::Ok();
}

Status DecodeLine(const Tokenizer& tokenizer, bool skip_special, std::string_view line,
                  JsonWriter& json) {
  std::vector<TokenId> ids;
  PACE_RETURN_IF_ERROR(ReadIdsLine(line, ids));
  json.BeginObject();
  json.Put("text", tokenizer.Decode(ids, skip_special));
  json.EndObject();
  return Status::Ok();
}

}  // namespace

int RunTokenizeCommand(const TokenizeArguments& arguments) {
  const Result<Tokenizer> tokenizer = Tokenizer::Load(arguments.tokenizer);
  if (!tokenizer.ok()) return Fail(tokenizer.status());
  Result<LineInput> input = LineInput::Open("");
  if (!input.ok()) return Fail(input.status());
  const Status status = AnswerLines(*input, [&](std::string_view line, std::string& out) {
    JsonWriter json(out);
    PACE_RETURN_IF_ERROR(arguments.decode
                             ? DecodeLine(*tokenizer, arguments.skip_special, line, json)
                             : EncodeLine(*tokenizer, line, json));
    out += '\n';
    return Status::Ok();
  });
  return status.ok() ? 0 : Fail(status);
}

}  // namespace pace
