#include "execution/tool_executor.h"

#include <utility>

#include "sandbox/program.h"
#include "sandbox/sandbox.h"
#include "task/code_interpreter.h"
#include "text/python_text.h"

namespace pace {
namespace {

constexpr std::string_view kNoOutput = "no stdout here";
constexpr size_t kMaxReprBytes = size_t{1} << 20;
constexpr int64_t kMaxKnownBytes = int64_t{256} << 20;

ToolReply Refused(const std::string& why) {
  return {.text = "Error when executing tool: " + why, .failed = true};
}

ToolReply ReplyTo(const ProgramResult& result) {
  ToolReply reply;
  reply.time = result.time;
  reply.timed_out = result.outcome == ProgramOutcome::kTimeLimit;
  reply.failed = result.outcome != ProgramOutcome::kFinished || result.return_code != 0;
  reply.text =
      result.outcome == ProgramOutcome::kFinished
          ? OutputText(result.out, result.out_cut) + OutputText(result.error, result.error_cut)
          : std::string(kNoOutput);
  return reply;
}

}  // namespace

Result<std::shared_ptr<ToolExecutor>> ToolExecutor::Open(const ToolsOptions& options) {
  if (options.kind() == ToolUse::kNone) return std::shared_ptr<ToolExecutor>();
  if (options.kind() == ToolUse::kEnvironment) {
    PACE_ASSIGN_OR_RETURN(const auto named, PythonNameOf("tools.use", options.use));
    Result<std::unique_ptr<EnvironmentPool>> pool =
        EnvironmentPool::Open(*named, {.python = options.python,
                                       .num_workers = options.num_workers,
                                       .memory_mib = options.memory_mib,
                                       .timeout = Seconds(options.timeout),
                                       .start_timeout = Seconds(options.start_timeout)});
    if (!pool.ok()) return pool.status().At("tools.use");
    return std::make_shared<ToolExecutor>(std::move(pool).value());
  }
  Result<std::unique_ptr<ProgramRunner>> runner = StartToolRunner(options);
  if (!runner.ok()) return runner.status().At("tools.use = code_interpreter");
  return std::make_shared<ToolExecutor>(std::move(runner).value(), options.reuse);
}

Result<std::optional<Value>> ToolExecutor::Schemas() const {
  if (environments_ == nullptr) return std::optional(CodeInterpreterTools());
  Result<Value> tools = ParsePythonJson(environments_->tools());
  if (!tools.ok()) return tools.status().At("tools.use: its tools");
  if (!tools->is_list() || tools->list().empty()) return std::optional<Value>();
  return std::optional(std::move(tools).value());
}

Result<ToolReply> ToolExecutor::Answer(const ToolRequest& request,
                                       const Cancellation& cancellation) {
  if (request.turn == nullptr) return Call(request.call, cancellation);
  const WallClock clock;
  const Seconds begin = clock.Now();
  EnvironmentStep step = environments_->Take(*request.turn, cancellation.descriptor);
  ToolReply reply{.text = step.observation,
                  .failed = step.failed || !step.ok(),
                  .timed_out = step.fault == RewardFault::kTimeout,
                  .time = clock.Now() - begin};
  reply.step = std::make_shared<const EnvironmentStep>(std::move(step));
  return reply;
}

Result<ToolReply> ToolExecutor::Call(const ToolCall& call, const Cancellation& cancellation) {
  if (call.name != kCodeInterpreter) {
    // As Python shows a key that a dict does not have.
    const Result<std::string> name = PythonRepr(Value(call.name), kMaxReprBytes);
    return Refused(name.ok() ? *name : call.name);
  }
  const Result<Value> arguments = ParsePythonJson(call.arguments);
  if (!arguments.ok()) return Refused(arguments.status().message());
  if (!arguments->is_dict()) {
    return Refused(Concat("'", arguments->TypeName(), "' object has no attribute 'get'"));
  }
  const Value* const code = arguments->dict().Find("code");
  if (code == nullptr) return Run("", cancellation);
  if (code->is_text()) return Run(code->text(), cancellation);
  const Result<std::string> shown = PythonRepr(*code, kMaxReprBytes);
  return shown.ok() ? Run(*shown, cancellation) : Refused(shown.status().message());
}

Result<ToolReply> ToolExecutor::AnswerOrFail(const ToolRequest& request,
                                             const Cancellation& cancellation) {
  Result<ToolReply> reply = Answer(request, cancellation);
  if (!reply.ok()) return FailLostCall(reply.status());
  const MutexLock lock(mutex_);
  num_lost_ = 0;
  return reply;
}

Result<ToolReply> ToolExecutor::FailLostCall(const Status& why) {
  const MutexLock lock(mutex_);
  if (++num_lost_ < kMaxLostCalls) return Refused(why.message());
  return why.At(Concat("tools: ", num_lost_, " calls in a row could not be run"));
}

Result<ToolReply> ToolExecutor::Run(const std::string& code, const Cancellation& cancellation) {
  if (reuse_) {
    const MutexLock lock(mutex_);
    const auto known = known_.find(code);
    if (known != known_.end()) return known->second;
  }
  PACE_ASSIGN_OR_RETURN(const ProgramResult result, runner_->Run({.code = code}, cancellation));
  const ToolReply reply = ReplyTo(result);
  // What a deadline or a caller cut short may end differently next time.
  if (!reuse_ || result.outcome != ProgramOutcome::kFinished) return reply;
  const MutexLock lock(mutex_);
  if (known_bytes_ > kMaxKnownBytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  known_bytes_ += static_cast<int64_t>(code.size() + reply.text.size());
  known_.emplace(code, reply);
  return reply;
}

}  // namespace pace
