// pace tokenize
#include <string>

#include "cli/command.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "inference/prompt_line.h"
#include "terminal/line_input.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

struct TokenizeArguments {
  std::string tokenizer;  // the folder of tokenizer.json
  bool decode = false;
  bool skip_special = false;
};

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

Status RunTokenize(const TokenizeArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(arguments.tokenizer));
  PACE_ASSIGN_OR_RETURN(LineInput input, LineInput::Open(""));
  return AnswerLines(input, [&](std::string_view line, std::string& out) {
    JsonWriter json(out);
    PACE_RETURN_IF_ERROR(arguments.decode
                             ? DecodeLine(tokenizer, arguments.skip_special, line, json)
                             : EncodeLine(tokenizer, line, json));
    out += '\n';
    return Status::Ok();
  });
}

}  // namespace

void AddTokenize(const CommandLine& line) {
  line.Add<TokenizeArguments>(
      "tokenize", "Turn texts into token ids or back, JSON Lines in and out",
      "echo '{\"text\": \"hello\"}' | pace tokenize --tokenizer models/tiny",
      [](CLI::App& app, TokenizeArguments& arguments) {
        app.add_option("--tokenizer", arguments.tokenizer, "Folder that holds tokenizer.json")
            ->required();
        CLI::Option* decode = app.add_flag("--decode", arguments.decode,
                                           "Read {\"ids\"} and write {\"text\"} instead");
        app.add_flag("--skip-special", arguments.skip_special, "Decode without special tokens")
            ->needs(decode);
      },
      RunTokenize);
}

}  // namespace pace
