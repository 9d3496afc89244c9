// pace verify
#include <limits>
#include <optional>
#include <string>

#include "cli/command.h"
#include "config/reward_options.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "judge/reward_pool.h"
#include "reward/verifier.h"
#include "task/json_values.h"
#include "terminal/line_input.h"

namespace pace {
namespace {

struct VerifyArguments {
  std::string mode = "dapo-int";
};

// Every mode, for --help.
std::string ModeNames() {
  std::string names(Name(VerifierMode::kDapo));
  for (int mode = 1; mode <= static_cast<int>(VerifierMode::kRetool); ++mode) {
    names += Concat(", ", Name(static_cast<VerifierMode>(mode)));
  }
  return names;
}

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
      std::optional<std::string> answer;
      ScanTextOrNumber(scan, answer);
      has_answer = answer.has_value();
      out.answer = answer.value_or("");
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
  if (scan.ok() && !has_answer) return InvalidArgument("needs 'answer', text or a number");
  return scan.status();
}

void AppendReply(const RewardReply& reply, std::string& out) {
  JsonWriter json(out);
  json.BeginObject();
  if (reply.ok()) {
    json.Put("correct", reply.correct);
    json.Put("score", reply.score);
    json.Put("extracted", reply.extracted);
    if (!reply.detail.empty()) {
      json.Key("detail");
      json.Raw(reply.detail);
    }
  } else {
    json.Put("error", Concat(Name(reply.fault), ": ", reply.message));
  }
  json.EndObject();
  out += '\n';
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

// With a function of the user's, as runs call it. A fault is part of the output.
Status VerifyOutside(const OwnReward& reward) {
  PACE_ASSIGN_OR_RETURN(const auto pool, RewardPool::Open(reward, RewardOptions{}));
  PACE_ASSIGN_OR_RETURN(LineInput input, LineInput::Open(""));
  int64_t number = 0;
  return AnswerLines(input, [&](std::string_view line, std::string& out) {
    VerifyLine given;
    PACE_RETURN_IF_ERROR(ReadLine(line, given));
    const RewardReply reply = pool->Judge({.id = Concat("line ", ++number),
                                           .response = given.response,
                                           .answer = given.answer,
                                           .prompt = "\"\"",
                                           .num_turns = given.num_turns});
    AppendReply(reply, out);
    return Status::Ok();
  });
}

Status RunVerify(const VerifyArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const auto own, OwnRewardOf(arguments.mode));
  if (own.has_value()) return VerifyOutside(*own);
  PACE_ASSIGN_OR_RETURN(const VerifierMode mode, VerifierModeFromName(arguments.mode));
  PACE_ASSIGN_OR_RETURN(LineInput input, LineInput::Open(""));
  return AnswerLines(input, [&](std::string_view line, std::string& out) {
    VerifyLine given;
    PACE_RETURN_IF_ERROR(ReadLine(line, given));
    AppendVerdict(Verify(mode, given.response, given.answer, given.num_turns), out);
    return Status::Ok();
  });
}

}  // namespace

void AddVerify(const CommandLine& line) {
  line.Add<VerifyArguments>(
      "verify", "Judge responses against their problems' answers, JSON Lines in and out",
      "echo '{\"response\": \"so x is 34.\\nAnswer: 34\", \"answer\": \"34\"}' | pace verify\n"
      "  pace verify --mode equiv < responses.jsonl",
      [](CLI::App& app, VerifyArguments& arguments) {
        app.add_option("--mode", arguments.mode,
                       Concat("How an answer is found and compared: ", ModeNames(),
                              "; or python:FILE:FUNCTION, or the URL of a server"))
            ->capture_default_str();
      },
      RunVerify);
}

}  // namespace pace
