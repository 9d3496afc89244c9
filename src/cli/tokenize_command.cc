// pace tokenize
#include <cstdio>
#include <iostream>
#include <string>

#include "cli/commands.h"
#include "cli/prompt_line.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "text/tokenizer.h"

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
  const Result<std::vector<TokenId>> ids = tokenizer.Encode(text);
  if (!ids.ok()) return ids.status();
  json.BeginObject();
  json.Key("ids");
  json.BeginArray();
  for (const TokenId id : *ids) json.Value(id);
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
  std::ios::sync_with_stdio(false);
  std::string line;
  std::string out;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty()) continue;
    out.clear();
    JsonWriter json(out);
    const Status status = arguments.decode
                              ? DecodeLine(*tokenizer, arguments.skip_special, line, json)
                              : EncodeLine(*tokenizer, line, json);
    if (!status.ok()) {
      std::fflush(stdout);
      return Fail(status.At(Concat("stdin:", number)));
    }
    out += '\n';
    std::fwrite(out.data(), 1, out.size(), stdout);
  }
  if (std::fflush(stdout) != 0) return Fail(Unavailable("stdout: cannot be written"));
  return 0;
}

}  // namespace pace
