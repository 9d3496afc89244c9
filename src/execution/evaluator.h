// Evaluator: how good a policy is on fixed benchmarks.
//
//   Result<Evaluator> evaluator = Evaluator::Create(settings, policy, executor);
//   Result<std::vector<BenchmarkScore>> scores = evaluator->Run(weights);
//
// It generates with an engine of its own, so training responses do not wait for it, or has the
// run's workers generate (RunOn).
// The random numbers of a response depend on the benchmark's problem and not on
// the run's seed or the version: evaluations of one policy agree, and those of
// two policies are paired.
//
// Thread-safety: none; one evaluation at a time.
#ifndef PACE_EXECUTION_EVALUATOR_H_
#define PACE_EXECUTION_EVALUATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/status.h"
#include "core/version.h"
#include "execution/policy.h"
#include "execution/tool_executor.h"
#include "judge/reward_pool.h"
#include "model/weight_set.h"
#include "record/response_record.h"
#include "record/step_metrics.h"
#include "rollout/request.h"
#include "task/problem.h"

namespace pace {

// Over the problems of one benchmark, k responses to each.
struct BenchmarkScore {
  std::string name = {};
  int64_t num_problems = 0;
  int64_t num_responses = 0;   // k
  double mean = 0;             // share of correct responses
  double mean_half_width = 0;  // of its 95 % interval, problems being the sample
  double pass = 0;             // share of problems with a correct response
  double majority = 0;         // share whose most frequent answer is correct
  double mean_length = 0;      // policy tokens of a response
  double truncated = 0;        // share of responses that hit the length limit
  // Of each problem, its correct responses.
  std::vector<int64_t> num_correct = {};
  // With evaluation.greedy: the share of problems whose greedy response is correct. That
  // response counts in nothing else.
  std::optional<double> greedy = {};
  // With tools: turns of a response, calls of a response, and the share of calls
  // that succeeded (none without a call).
  std::optional<double> mean_turns = {};
  std::optional<double> mean_calls = {};
  std::optional<double> call_success = {};
  // Responses as text, as record.responses asks: the first response to a few
  // problems, the same in every evaluation, or all.
  std::vector<ResponseRecord> responses = {};

  // eval/<name>/mean@k and so on, as metrics.jsonl and eval.jsonl call them.
  void AppendTo(MetricsRow& row) const;
};

// One response of an evaluation; borrowed for the time of a call.
struct EvaluatedResponse {
  const Problem& problem;
  const ResponseRecord& record;
  const std::string& text;  // all of it, a tool's replies included
};

// Who generates the responses of an evaluation in place of its own engine.
class EvaluationWorkers {
 public:
  virtual ~EvaluationWorkers() = default;
  virtual void Submit(GroupRequest request) = 0;
  // The responses that have finished since the last call; waits for the first one. An error: the
  // rest does not come.
  virtual Result<std::vector<FinishedResponse>> Wait() = 0;
};

class Evaluator {
 public:
  // `executor`: null where tools.use is none; `rewards`: null where task.verifier names no
  // function.
  static Result<Evaluator> Create(const Settings& settings, const Policy& policy,
                                  std::shared_ptr<ToolExecutor> executor,
                                  std::shared_ptr<RewardPool> rewards = nullptr);

  // Called now and then with the responses done and to do.
  using Progress = std::function<void(int64_t done, int64_t total)>;
  // Called with every response, as they finish.
  using ResponseSink = std::function<void(const EvaluatedResponse&)>;
  Result<std::vector<BenchmarkScore>> Run(const WeightSet& weights, const Progress& progress = {},
                                          const ResponseSink& sink = {});

  // The same by others. Their random numbers are their own where they take no seeds.
  // REQUIRES: no tools
  Result<std::vector<BenchmarkScore>> RunOn(EvaluationWorkers& workers);

  bool empty() const;  // no benchmark at all

  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;
  ~Evaluator();

 private:
  struct State;
  explicit Evaluator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_EVALUATOR_H_
