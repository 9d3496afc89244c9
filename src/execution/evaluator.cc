#include "execution/evaluator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/check.h"
#include "core/parallel.h"
#include "execution/engine_maker.h"
#include "execution/learner_options.h"
#include "execution/prompt_source.h"
#include "execution/response_recorder.h"
#include "reward/verifier.h"
#include "rollout/engine_core.h"
#include "rollout/turn_count.h"
#include "task/benchmark.h"
#include "task/prompt_renderer.h"

namespace pace {
namespace {

constexpr uint64_t kEvaluationSeed = 0x6576616C;  // "eval"
// Problems of a benchmark whose first response is kept as text.
constexpr size_t kSampledProblems = 4;
constexpr double kNormal95 = 1.959963984540054;

// What was said of the k responses to one problem.
struct ProblemTally {
  int64_t num_correct = 0;
  bool greedy_correct = false;
  std::map<std::string, std::pair<int64_t, bool>> answers;  // votes, correct

  void Add(const Verification& seen) {
    num_correct += seen.correct ? 1 : 0;
    // A response without an answer votes for nothing.
    if (!seen.extracted.has_value()) return;
    auto& [votes, correct] = answers[*seen.extracted];
    ++votes;
    correct = seen.correct;
  }
  bool MajorityCorrect() const {
    const auto most = std::max_element(
        answers.begin(), answers.end(),
        [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    return most != answers.end() && most->second.second;
  }
};

BenchmarkScore Summarise(const Benchmark& benchmark, const std::vector<ProblemTally>& tallies,
                         int64_t num_responses) {
  BenchmarkScore score;
  score.name = benchmark.name;
  score.num_problems = static_cast<int64_t>(tallies.size());
  score.num_responses = num_responses;
  const auto n = static_cast<double>(tallies.size());
  double squares = 0;
  for (const ProblemTally& tally : tallies) {
    const double share =
        static_cast<double>(tally.num_correct) / static_cast<double>(num_responses);
    score.num_correct.push_back(tally.num_correct);
    score.mean += share / n;
    squares += share * share / n;
    score.pass += (tally.num_correct > 0 ? 1 : 0) / n;
    score.majority += (tally.MajorityCorrect() ? 1 : 0) / n;
  }
  const double variance = std::max(0.0, squares - score.mean * score.mean);
  score.mean_half_width = n > 1 ? kNormal95 * std::sqrt(variance / (n - 1)) : 1;
  return score;
}

}  // namespace

void BenchmarkScore::AppendTo(MetricsRow& row) const {
  const std::string prefix = "eval/" + name + "/";
  const std::string k = Concat("@", num_responses);
  row.emplace_back(prefix + "mean" + k, mean);
  row.emplace_back(prefix + "mean" + k + "_half_width", mean_half_width);
  row.emplace_back(prefix + "pass" + k, pass);
  row.emplace_back(prefix + "majority" + k, majority);
  if (greedy.has_value()) row.emplace_back(prefix + "greedy", *greedy);
  row.emplace_back(prefix + "length", mean_length);
  row.emplace_back(prefix + "truncated", truncated);
  if (mean_turns.has_value()) row.emplace_back(prefix + "turns", *mean_turns);
  if (mean_calls.has_value()) row.emplace_back(prefix + "tool_calls", *mean_calls);
  if (call_success.has_value()) row.emplace_back(prefix + "tool_success", *call_success);
}

struct Evaluator::State {
  Settings settings;
  Policy policy;
  std::vector<Benchmark> benchmarks;
  std::optional<PromptRenderer> renderer;
  std::optional<TurnRules> turns;
  std::shared_ptr<ToolExecutor> executor;
  std::shared_ptr<RewardPool> rewards;
  std::unique_ptr<EngineCore> engine;
  int64_t num_runs = 0;

  // Responses to one problem. A greedy one, if any, is the last, so that the others keep their
  // random numbers.
  int64_t NumMembers() const {
    return settings.evaluation.num_responses + (settings.evaluation.greedy ? 1 : 0);
  }
  bool IsGreedy(MemberId id) const { return id.member == settings.evaluation.num_responses; }
  // Whether record.responses asks for the text of this response.
  bool Keeps(MemberId id, size_t problem, size_t num_problems) const;
  ResponseRecord Describe(const Benchmark& benchmark, size_t problem, const FinishedResponse& done,
                          const Verification& seen) const;
  // By the problems' verifiers; a reward that fails counts as a wrong response.
  std::vector<Verification> VerifyAll(const Benchmark& benchmark, int64_t first,
                                      const std::vector<FinishedResponse>& finished) const;
  // `workers`: null where the engine generates.
  Result<BenchmarkScore> RunOne(const Benchmark& benchmark, uint64_t seed,
                                const std::function<void()>& step, const ResponseSink& sink,
                                EvaluationWorkers* workers = nullptr);
  // What a response at rest asks of the tool or its environment; none where it ends.
  std::optional<ToolRequest> CallOf(const Benchmark& benchmark, int64_t first, MemberId id) const;
  // Responses at rest call the tool, all at once, and read on, or end.
  Status TakeTurns(const Benchmark& benchmark, int64_t first, std::vector<MemberId> resting,
                   ToolRecord& record, std::vector<FinishedResponse>& finished);
  // Of the unfinished responses of the benchmark under way.
  std::map<MemberId, EnvironmentRecord> environments = {};
  int64_t next_group = 0;
};

Evaluator::Evaluator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;
Evaluator::~Evaluator() = default;

Result<Evaluator> Evaluator::Create(const Settings& settings, const Policy& policy,
                                    std::shared_ptr<ToolExecutor> executor,
                                    std::shared_ptr<RewardPool> rewards) {
  auto state = std::unique_ptr<State>(new State{.settings = settings,
                                                .policy = policy,
                                                .benchmarks = {},
                                                .renderer = {},
                                                .turns = {},
                                                .executor = std::move(executor),
                                                .rewards = std::move(rewards),
                                                .engine = {}});
  PACE_ASSIGN_OR_RETURN(state->benchmarks, LoadBenchmarks(settings.task));
  const auto most = static_cast<size_t>(settings.evaluation.max_problems);
  for (Benchmark& benchmark : state->benchmarks) {
    if (most > 0 && benchmark.problems.size() > most) benchmark.problems.resize(most);
  }
  PACE_ASSIGN_OR_RETURN(PromptRenderer renderer,
                        MakeRenderer(settings, policy, state->executor.get()));
  PACE_ASSIGN_OR_RETURN(std::optional<TurnRules> turns, MakeTurnRules(settings, policy, renderer));
  PACE_CHECK(turns.has_value() == (state->executor != nullptr), "tools without an executor");
  state->turns = std::move(turns);
  state->renderer.emplace(std::move(renderer));
  Settings plain = settings;
  plain.engine.sync = SyncRule::kKeep;
  plain.engine.slots = 0;
  plain.engine.quantization = EngineQuantization::kNone;
  PACE_ASSIGN_OR_RETURN(state->engine, MakeEngine(plain, policy));
  return Evaluator(std::move(state));
}

bool Evaluator::empty() const {
  return state_->benchmarks.empty();
}

std::vector<Verification> Evaluator::State::VerifyAll(
    const Benchmark& benchmark, int64_t first,
    const std::vector<FinishedResponse>& finished) const {
  std::vector<Verification> seen(finished.size());
  std::vector<size_t> asked;
  std::vector<RewardRequest> requests;
  for (size_t i = 0; i < finished.size(); ++i) {
    const PartialResponse& response = finished[i].response;
    const auto index = static_cast<size_t>(finished[i].id.group.value() - first);
    const Problem& problem = benchmark.problems[index];
    const auto environment = environments.find(finished[i].id);
    if (environment != environments.end() && environment->second.reward.has_value()) {
      seen[i] = {environment->second.is_correct(), *environment->second.reward, {}};
    } else if (problem.verifier == VerifierMode::kOwn && rewards != nullptr) {
      asked.push_back(i);
      requests.push_back(RewardRequestOf(problem, response, policy.tokenizer));
    } else {
      seen[i] = VerifyResponse(problem, response, policy.tokenizer);
    }
  }
  if (asked.empty()) return seen;
  const std::vector<RewardReply> replies = rewards->JudgeAll(std::move(requests));
  for (size_t i = 0; i < asked.size(); ++i) {
    seen[asked[i]] = {replies[i].correct, replies[i].score, replies[i].extracted};
  }
  return seen;
}

Result<BenchmarkScore> Evaluator::State::RunOne(const Benchmark& benchmark, uint64_t seed,
                                                const std::function<void()>& step,
                                                const ResponseSink& sink,
                                                EvaluationWorkers* workers) {
  const EvaluationOptions& options = settings.evaluation;
  const int64_t first = next_group;
  environments.clear();
  for (size_t i = 0; i < benchmark.problems.size(); ++i) {
    PACE_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, renderer->Render(benchmark.problems[i]));
    GroupRequest request;
    request.group = GroupId(next_group++);
    request.prompt = PromptIndex(static_cast<int64_t>(i));
    request.seed = seed;
    request.prompt_tokens = std::move(tokens);
    request.num_responses = NumMembers();
    if (options.greedy) request.greedy_member = options.num_responses;
    request.sampling = {.temperature = options.temperature, .top_p = options.top_p};
    request.stop = {.max_tokens = settings.generation.max_tokens,
                    .stop_tokens = policy.config.eos,
                    .pauses = turns.has_value()};
    if (workers != nullptr) {
      workers->Submit(std::move(request));
    } else {
      PACE_RETURN_IF_ERROR(engine->Submit(std::move(request)).At(benchmark.problems[i].id));
    }
  }
  std::vector<ProblemTally> tallies(benchmark.problems.size());
  double num_tokens = 0;
  double num_truncated = 0;
  double num_turns = 0;
  std::vector<ResponseRecord> kept;
  const auto tally = [&](const std::vector<FinishedResponse>& finished) {
    const std::vector<Verification> verified = VerifyAll(benchmark, first, finished);
    for (size_t i = 0; i < finished.size(); ++i) {
      const FinishedResponse& done = finished[i];
      const auto index = static_cast<size_t>(done.id.group.value() - first);
      const Problem& problem = benchmark.problems[index];
      const Verification& seen = verified[i];
      if (step) step();
      if (IsGreedy(done.id)) {
        tallies[index].greedy_correct = seen.correct;
        continue;
      }
      tallies[index].Add(seen);
      const bool keeps = Keeps(done.id, index, tallies.size());
      if (keeps || sink) {
        ResponseRecord record = Describe(benchmark, index, done, seen);
        if (sink) sink({problem, record, TextOf(done.response, policy.tokenizer)});
        if (settings.record.responses == RecordResponses::kSample) {
          CutTexts(record, kMostSampleBytes);
        }
        if (keeps) kept.push_back(std::move(record));
      }
      num_tokens += static_cast<double>(done.response.num_policy_tokens());
      num_truncated += done.reason == FinishReason::kMaxTokens ? 1 : 0;
      num_turns += static_cast<double>(CountTurns(done.response).assistant);
    }
  };
  int64_t num_elsewhere = workers == nullptr ? 0 : std::ssize(benchmark.problems) * NumMembers();
  while (num_elsewhere > 0) {
    PACE_ASSIGN_OR_RETURN(const std::vector<FinishedResponse> finished, workers->Wait());
    num_elsewhere -= std::ssize(finished);
    tally(finished);
  }
  ToolRecord calls;
  std::vector<MemberId> resting;
  while (engine->busy() || !resting.empty()) {
    if (!engine->busy()) {
      std::vector<FinishedResponse> ended;
      PACE_RETURN_IF_ERROR(TakeTurns(benchmark, first, std::exchange(resting, {}), calls, ended));
      tally(ended);
      continue;
    }
    PACE_ASSIGN_OR_RETURN(StepReport report, engine->Step());
    tally(report.finished);
    resting.insert(resting.end(), report.paused.begin(), report.paused.end());
  }
  BenchmarkScore score = Summarise(benchmark, tallies, options.num_responses);
  const auto responses = static_cast<double>(score.num_problems * score.num_responses);
  // In an order that does not depend on which finished first.
  std::sort(kept.begin(), kept.end(), [](const ResponseRecord& a, const ResponseRecord& b) {
    return std::pair(a.problem, a.head.member) < std::pair(b.problem, b.head.member);
  });
  score.responses = std::move(kept);
  if (options.greedy) {
    const auto correct = std::ranges::count_if(tallies, &ProblemTally::greedy_correct);
    score.greedy = static_cast<double>(correct) / static_cast<double>(tallies.size());
  }
  score.mean_length = num_tokens / responses;
  score.truncated = num_truncated / responses;
  if (!turns.has_value()) return score;
  const auto num_calls = static_cast<double>(calls.num_calls);
  score.mean_turns = num_turns / responses;
  score.mean_calls = num_calls / responses;
  if (num_calls > 0) {
    score.call_success = 1 - static_cast<double>(calls.num_failures) / num_calls;
  }
  return score;
}

bool Evaluator::State::Keeps(MemberId id, size_t problem, size_t num_problems) const {
  if (settings.record.responses != RecordResponses::kSample) {
    return settings.record.responses == RecordResponses::kAll;
  }
  const size_t every = std::max<size_t>(1, num_problems / kSampledProblems);
  return id.member == 0 && problem % every == 0 && problem / every < kSampledProblems;
}

ResponseRecord Evaluator::State::Describe(const Benchmark& benchmark, size_t problem,
                                          const FinishedResponse& done,
                                          const Verification& seen) const {
  const Problem& asked = benchmark.problems[problem];
  const Result<std::vector<TokenId>> prompt = renderer->Render(asked);
  ResponseRecord record = TranscriptOf(asked, prompt.ok() ? *prompt : std::vector<TokenId>(),
                                       done.response, seen, policy.tokenizer);
  record.benchmark = benchmark.name;
  record.head.group = static_cast<int64_t>(problem);
  record.head.member = done.id.member;
  record.problem = static_cast<int64_t>(problem);
  record.finish = FinishReasonName(done.reason);
  return record;
}

std::optional<ToolRequest> Evaluator::State::CallOf(const Benchmark& benchmark, int64_t first,
                                                    MemberId id) const {
  const PartialResponse& response = *engine->Peek(id);
  if (settings.tools.kind() != ToolUse::kEnvironment) {
    std::optional<ToolCall> call = turns->CallOf(response);
    return call.has_value() ? std::optional(ToolRequest(*std::move(call))) : std::nullopt;
  }
  EnvironmentTurn turn = turns->TurnOf(response);
  turn.key = Concat("evaluate ", num_runs, " ", id.group.value(), " ", id.member);
  turn.problem =
      EnvironmentProblemOf(benchmark.problems[static_cast<size_t>(id.group.value() - first)]);
  if (const auto known = environments.find(id); known != environments.end()) {
    turn.state = known->second.state;
    turn.num_restored = known->second.num_steps;
  }
  return ToolRequest(std::move(turn));
}

Status Evaluator::State::TakeTurns(const Benchmark& benchmark, int64_t first,
                                   std::vector<MemberId> resting, ToolRecord& record,
                                   std::vector<FinishedResponse>& finished) {
  std::vector<std::pair<MemberId, ToolRequest>> calls;
  for (const MemberId id : resting) {
    std::optional<ToolRequest> call = CallOf(benchmark, first, id);
    if (call.has_value()) {
      calls.emplace_back(id, *std::move(call));
    } else {
      finished.push_back(engine->FinishPaused(id));
    }
  }
  std::vector<std::optional<Result<ToolReply>>> replies(calls.size());
  ForEachInParallel(calls.size(), settings.tools.max_programs,
                    [&](size_t i) { replies[i].emplace(executor->AnswerOrFail(calls[i].second)); });
  for (size_t i = 0; i < calls.size(); ++i) {
    const MemberId id = calls[i].first;
    if (!replies[i]->ok()) return replies[i]->status();
    const ToolReply& reply = **replies[i];
    if (reply.step != nullptr) {
      environments[id].Add(*reply.step);
      // A response whose environment fails counts as wrong.
      if (!reply.step->ok()) environments[id] = {.reward = 0, .correct = false};
    }
    const bool counts = reply.step == nullptr || !(reply.ends() || calls[i].second.turn->last);
    if (counts && !IsGreedy(id)) record += RecordOf(reply, reply.time);
    PACE_ASSIGN_OR_RETURN(const auto tokens, turns->ReplyOf(*engine->Peek(id), reply));
    if (tokens.has_value()) {
      PACE_RETURN_IF_ERROR(engine->Continue(id, *tokens));
    } else {
      finished.push_back(engine->FinishPaused(id));
    }
  }
  return Status::Ok();
}

Result<std::vector<BenchmarkScore>> Evaluator::RunOn(EvaluationWorkers& workers) {
  PACE_CHECK(state_->executor == nullptr, "tools are called by the engine's evaluation alone");
  std::vector<BenchmarkScore> scores;
  for (size_t i = 0; i < state_->benchmarks.size(); ++i) {
    PACE_ASSIGN_OR_RETURN(
        BenchmarkScore score,
        state_->RunOne(state_->benchmarks[i], kEvaluationSeed + i, {}, {}, &workers));
    scores.push_back(std::move(score));
  }
  return scores;
}

Result<std::vector<BenchmarkScore>> Evaluator::Run(const WeightSet& weights,
                                                   const Progress& progress,
                                                   const ResponseSink& sink) {
  EngineCore& engine = *state_->engine;
  PACE_ASSIGN_OR_RETURN(const std::shared_ptr<const DecoderWeights> prepared,
                        engine.decoder().Prepare(weights));
  PACE_RETURN_IF_ERROR(engine.Sync(PolicyVersion(state_->num_runs++), prepared));
  int64_t total = 0;
  for (const Benchmark& benchmark : state_->benchmarks) {
    total += static_cast<int64_t>(benchmark.problems.size()) * state_->NumMembers();
  }
  int64_t done = 0;
  const auto step = [&] {
    ++done;
    if (progress) progress(done, total);
  };
  std::vector<BenchmarkScore> scores;
  for (size_t i = 0; i < state_->benchmarks.size(); ++i) {
    PACE_ASSIGN_OR_RETURN(BenchmarkScore score,
                          state_->RunOne(state_->benchmarks[i], kEvaluationSeed + i, step, sink));
    scores.push_back(std::move(score));
  }
  return scores;
}

}  // namespace pace
