// pace verify
#include <cstdio>
#include <limits>
#include <string>

#include "cli/commands.h"
#include "cli/line_input.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "reward/verifier.h"

namespace pace {
namespace {

constexpr size_t kMaxWaitingBytes = size_t{1} << 16;

struct VerifyLine {
  std::string response;
  std::string answer;
  int64_t num_turns = kDefaultNumTurns;
};

Status ReadLine(std::string_view line, VerifyLine& out) {
  bool has_response = false;
  bool has_answer = false;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "response") {
      has_response = scan.Text(out.response);
    } else if (scan.key() == "answer") {
      has_answer = scan.Text(out.answer);
    } else if (scan.key() == "num_turns") {
      if (!scan.TakeNull()) {
        scan.Integer(0, std::numeric_limits<int32_t>::max(), "user, tool and assistant turns",
                     out.num_turns);
      }
    } else {
      scan.Skip();
    }
  }
  scan.End();
  if (scan.ok() && !has_response) return InvalidArgument("needs 'response'");
  if (scan.ok() && !has_answer) return InvalidArgument("needs 'answer'");
  return scan.status();
}

void AppendVerdict(const Verification& seen, std::string& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Put("correct", seen.correct);
  json.Put("score", seen.score);
  json.Put("extracted", seen.extracted);
  json.EndObject();
  out += '\n';
}

// Writes what is there before it waits for more.
Status WriteOut(std::string& out) {
  std::fwrite(out.data(), 1, out.size(), stdout);
  out.clear();
  if (std::fflush(stdout) != 0) return Unavailable("stdout: cannot be written");
  return Status::Ok();
}

Status VerifyLines(VerifierMode mode, LineInput& input) {
  std::string line;
  std::string out;
  while (true) {
    const Result<LineInput::Read> read = input.Next(/*wait=*/out.empty(), line);
    Status status = read.status();
    const bool has_line = read.ok() && *read == LineInput::Read::kLine;
    if (has_line && !line.empty()) {
      VerifyLine given;
      status = ReadLine(line, given).At(input.where());
      if (status.ok()) {
        AppendVerdict(Verify(mode, given.response, given.answer, given.num_turns), out);
      }
    }
    if (has_line && status.ok() && out.size() < kMaxWaitingBytes) continue;
    PACE_RETURN_IF_ERROR(WriteOut(out));
    if (!status.ok()) return status;
    if (*read == LineInput::Read::kEnd) return Status::Ok();
  }
}

}  // namespace

int RunVerifyCommand(const VerifyArguments& arguments) {
  const Result<VerifierMode> mode = VerifierModeFromName(arguments.mode);
  if (!mode.ok()) return Fail(mode.status());
  Result<LineInput> input = LineInput::Open("");
  if (!input.ok()) return Fail(input.status());
  const Status status = VerifyLines(*mode, *input);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace pace
