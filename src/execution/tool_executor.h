// ToolExecutor answers responses that paused: it runs the program of a call, or has the
// environment of the response take its turn, and returns what the response reads.
//
//   Result<std::shared_ptr<ToolExecutor>> executor = ToolExecutor::Open(settings.tools);
//   Result<ToolReply> reply = (*executor)->Answer(call);
//
// Every call of a program is answered, a malformed one with the text of an error. The texts are
// those of verl: what the program printed, "no stdout here" where it was ended. A fault of an
// environment is a reply, too: reward.on_error says what follows.
//
// Thread-safety: all but Open may be called from any thread.
#ifndef PACE_EXECUTION_TOOL_EXECUTOR_H_
#define PACE_EXECUTION_TOOL_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "config/tools_options.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/status.h"
#include "execution/trajectory.h"
#include "judge/environment_pool.h"
#include "judge/environment_turn.h"
#include "sandbox/program.h"
#include "text/hermes.h"
#include "text/value.h"

namespace pace {

// What a paused response asks: a call of the code interpreter, or a turn of an environment.
struct ToolRequest {
  ToolRequest() = default;
  ToolRequest(ToolCall asked) : call(std::move(asked)) {}  // NOLINT(google-explicit-constructor)
  explicit ToolRequest(EnvironmentTurn taken)
      : turn(std::make_shared<const EnvironmentTurn>(std::move(taken))) {}

  ToolCall call = {};
  std::shared_ptr<const EnvironmentTurn> turn = {};
};

struct ToolReply {
  std::string text = {};   // whole: TurnRules cuts it
  bool failed = false;     // not a program that ended with code 0
  bool timed_out = false;  // it was ended at its deadline
  Seconds time{0};         // that it ran
  // What an environment said; null of a program.
  std::shared_ptr<const EnvironmentStep> step = {};

  // Whether the response ends without reading it.
  bool ends() const { return step != nullptr && (step->done || !step->ok()); }
};

// A call that took this time, as its response counts it.
inline ToolRecord RecordOf(const ToolReply& reply, Seconds took) {
  return {.num_calls = 1, .num_failures = reply.failed ? 1 : 0, .time = took};
}

class ToolExecutor {
 public:
  // Null where tools.use is none. An error says what is missing to run programs.
  static Result<std::shared_ptr<ToolExecutor>> Open(const ToolsOptions& options);

  ToolExecutor(std::unique_ptr<ProgramRunner> runner, bool reuse)
      : runner_(std::move(runner)), reuse_(reuse) {}
  explicit ToolExecutor(std::unique_ptr<EnvironmentPool> environments)
      : environments_(std::move(environments)), reuse_(false) {}

  // An error: the program could not be run.
  Result<ToolReply> Answer(const ToolRequest& request, const Cancellation& cancellation = {});

  // For runs, which a lost call must not end: it gets a failed reply. kMaxLostCalls lost
  // in a row are an error.
  Result<ToolReply> AnswerOrFail(const ToolRequest& request, const Cancellation& cancellation = {});
  static constexpr int64_t kMaxLostCalls = 64;
  // The same for a call that was lost before it got here.
  Result<ToolReply> FailLostCall(const Status& why);

  // One line about what holds programs, for the log; empty: nothing to say.
  std::string Description() const { return runner_ != nullptr ? runner_->Description() : ""; }
  // The tools that prompts show; none where an environment has none.
  Result<std::optional<Value>> Schemas() const;

 private:
  Result<ToolReply> Call(const ToolCall& call, const Cancellation& cancellation);
  Result<ToolReply> Run(const std::string& code, const Cancellation& cancellation);

  const std::unique_ptr<ProgramRunner> runner_;  // null with environments
  const std::unique_ptr<EnvironmentPool> environments_;
  const bool reuse_;
  Mutex mutex_;
  std::map<std::string, ToolReply> known_ PACE_GUARDED_BY(mutex_);  // by program
  int64_t known_bytes_ PACE_GUARDED_BY(mutex_) = 0;
  int64_t num_lost_ PACE_GUARDED_BY(mutex_) = 0;  // in a row
};

}  // namespace pace

#endif  // PACE_EXECUTION_TOOL_EXECUTOR_H_
