#include "inference/generate_lines.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/json_writer.h"

namespace pace {
namespace {

// Prompts are read ahead of the engine, which takes them as memory allows.
constexpr int64_t kMaxUnfinished = 512;
constexpr size_t kMaxWaiting = 4096;

}  // namespace

Status GenerationOptions::Validate() const {
  PACE_RETURN_IF_ERROR(sampling.Validate());
  if (max_tokens.has_value() && *max_tokens < 1) {
    return InvalidArgument("--max-tokens ", *max_tokens, ": must be >= 1");
  }
  if (num_responses < 1) {
    return InvalidArgument("--num-responses ", num_responses, ": must be >= 1");
  }
  return Status::Ok();
}

Result<GroupRequest> RequestFor(const GenerationOptions& options, const ModelConfig& config,
                                bool has_tokenizer, int64_t index, std::vector<TokenId> prompt) {
  const auto num_prompt = static_cast<int64_t>(prompt.size());
  const int64_t room = config.max_positions - num_prompt;
  if (num_prompt == 0) return InvalidArgument("the prompt has no tokens: it needs at least one");
  if (room < options.max_tokens.value_or(1)) {
    return InvalidArgument(num_prompt, " tokens and ", options.max_tokens.value_or(1),
                           " more (--max-tokens): the model has ", config.max_positions,
                           " positions");
  }
  GroupRequest request;
  request.group = GroupId(index);
  request.prompt = PromptIndex(index);
  request.seed = options.seed;
  request.prompt_tokens = std::move(prompt);
  request.num_responses = options.num_responses;
  request.sampling = options.sampling;
  request.stop.max_tokens = options.max_tokens.value_or(std::min(kDefaultMaxTokens, room));
  if (!options.ignore_eos) request.stop.stop_tokens = config.eos;
  request.stop.stop_strings = options.stop_strings;
  PACE_RETURN_IF_ERROR(CheckRequest(request, config, has_tokenizer));
  return request;
}

Result<std::unique_ptr<EngineCore>> EngineFor(ReadyModel model, std::optional<Tokenizer> tokenizer,
                                              int64_t max_running) {
  RolloutOptions options;
  options.score_prefixes = false;
  options.max_running = max_running;
  auto engine =
      std::make_unique<EngineCore>(std::move(model.decoder), std::move(tokenizer), options);
  PACE_RETURN_IF_ERROR(engine->Sync(PolicyVersion(0), std::move(model.weights)));
  return engine;
}

Status LineGenerator::Submit(std::string_view line) {
  PACE_ASSIGN_OR_RETURN(const PromptLine prompt, ParsePromptLine(line));
  PACE_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, texts_.TokensOf(prompt));
  const int64_t index = first_waiting_ + static_cast<int64_t>(waiting_.size());
  PACE_ASSIGN_OR_RETURN(GroupRequest request,
                        RequestFor(options_, engine_.decoder().config(), texts_.tokenizer().ok(),
                                   index, std::move(tokens)));
  PACE_RETURN_IF_ERROR(engine_.Submit(std::move(request)));
  waiting_.emplace_back(static_cast<size_t>(options_.num_responses));
  return Status::Ok();
}

Result<bool> LineGenerator::ReadAhead() {
  std::string line;
  while (engine_.num_unfinished() < kMaxUnfinished && waiting_.size() < kMaxWaiting) {
    PACE_ASSIGN_OR_RETURN(const LineInput::Read read, input_.Next(/*wait=*/!engine_.busy(), line));
    if (read == LineInput::Read::kEnd) return false;
    if (read == LineInput::Read::kNotYet) return true;
    if (!line.empty()) PACE_RETURN_IF_ERROR(Submit(line).At(input_.where()));
  }
  return true;
}

std::string LineGenerator::LineOf(const FinishedResponse& finished) {
  const std::vector<TokenRecord>& tokens = finished.response.tokens;
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Key("ids");
  json.BeginArray();
  for (const TokenRecord& token : tokens) json.Value(token.id);
  json.EndArray();
  json.Key("logprobs");
  json.BeginArray();
  for (const TokenRecord& token : tokens) json.Value(token.logprob);
  json.EndArray();
  if (texts_.tokenizer().ok()) {
    std::vector<TokenId> ids;
    for (const TokenRecord& token : tokens) ids.push_back(token.id);
    json.Put("text", texts_.tokenizer()->Decode(ids, /*skip_special=*/true));
  }
  if (options_.num_responses > 1) json.Put("response", finished.id.member);
  json.EndObject();
  out += '\n';
  num_tokens_ += static_cast<int64_t>(tokens.size());
  ++num_finished_;
  return out;
}

Status LineGenerator::Print() {
  std::string out;
  const auto is_whole = [](const Answers& answers) {
    return std::all_of(answers.begin(), answers.end(),
                       [](const auto& line) { return line.has_value(); });
  };
  while (!waiting_.empty() && is_whole(waiting_.front())) {
    for (const std::optional<std::string>& line : waiting_.front()) out += *line;
    waiting_.pop_front();
    ++first_waiting_;
  }
  if (out.empty()) return Status::Ok();
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (std::fflush(stdout) != 0) return Unavailable("stdout: cannot be written");
  return Status::Ok();
}

Status LineGenerator::Run() {
  Status bad_line;
  for (bool more = true; more || engine_.busy();) {
    if (more) {
      const Result<bool> read = ReadAhead();
      bad_line = read.status();
      more = read.ok() && *read;
    }
    if (!engine_.busy()) continue;
    PACE_ASSIGN_OR_RETURN(const StepReport step, engine_.Step());
    for (const FinishedResponse& finished : step.finished) {
      const auto at = static_cast<size_t>(finished.id.group.value() - first_waiting_);
      waiting_[at][static_cast<size_t>(finished.id.member)] = LineOf(finished);
    }
    PACE_RETURN_IF_ERROR(Print());
  }
  return bad_line;
}

}  // namespace pace
