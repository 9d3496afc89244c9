// pace score
#include <cstdio>
#include <string>

#include "cli/command.h"
#include "core/json_writer.h"
#include "inference/ready_model.h"
#include "inference/sequence_scorer.h"
#include "terminal/line_input.h"

namespace pace {
namespace {

struct ScoreArguments {
  InferenceArguments inference;
  std::string file;  // empty = stdin
};

constexpr int64_t kPassTokens = 512;
// Lines are read ahead until this many tokens wait: enough to fill passes.
constexpr int64_t kMaxWaitingTokens = 8 * kPassTokens;
constexpr int64_t kNumSequences = 64;

// Submits lines until enough wait or none is there. False at the end of input.
Result<bool> ReadAhead(LineInput& input, ModelTexts& texts, SequenceScorer& scorer) {
  std::string line;
  while (scorer.num_waiting_tokens() < kMaxWaitingTokens) {
    PACE_ASSIGN_OR_RETURN(const LineInput::Read read, input.Next(/*wait=*/!scorer.busy(), line));
    if (read == LineInput::Read::kEnd) return false;
    if (read == LineInput::Read::kNotYet) return true;
    if (line.empty()) continue;
    const Result<PromptLine> prompt = ParsePromptLine(line);
    if (!prompt.ok()) return prompt.status().At(input.where());
    Result<std::vector<TokenId>> ids = texts.TokensOf(*prompt);
    if (!ids.ok()) return ids.status().At(input.where());
    PACE_RETURN_IF_ERROR(scorer.Submit(std::move(ids).value()).At(input.where()));
  }
  return true;
}

Status Print(const std::vector<std::vector<float>>& completed) {
  std::string out;
  for (const std::vector<float>& logprobs : completed) {
    JsonWriter json(out);
    json.BeginObject();
    json.Key("logprobs");
    json.BeginArray();
    for (const float logprob : logprobs) json.Value(logprob);
    json.EndArray();
    json.EndObject();
    out += '\n';
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (std::fflush(stdout) != 0) return Unavailable("stdout: cannot be written");
  return Status::Ok();
}

Status Score(const ScoreArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(LineInput input, LineInput::Open(arguments.file));
  ModelTexts texts(arguments.inference.model);
  PACE_ASSIGN_OR_RETURN(const ReadyModel model, LoadReadyModel(arguments.inference, kNumSequences));
  model.decoder->Install(model.weights);
  SequenceScorer scorer(*model.decoder, kPassTokens);
  // A bad line ends the reading; what came before it is still answered.
  Status bad_line;
  for (bool more = true; more || scorer.busy();) {
    if (more) {
      const Result<bool> read = ReadAhead(input, texts, scorer);
      bad_line = read.status();
      more = read.ok() && *read;
    }
    PACE_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> completed, scorer.Step());
    PACE_RETURN_IF_ERROR(Print(completed));
  }
  return bad_line;
}

}  // namespace

void AddScore(const CommandLine& line) {
  line.Add<ScoreArguments>(
      "score", "Log-probability of each token given those before it, JSON Lines in and out",
      "echo '{\"ids\": [1, 403, 407]}' | pace score --model models/stories",
      [](CLI::App& app, ScoreArguments& arguments) {
        AddInferenceFlags(app, arguments.inference);
        app.add_option("file", arguments.file,
                       "Lines of {\"ids\"}, {\"text\"} or {\"messages\"} (default: stdin)");
      },
      Score);
}

}  // namespace pace
