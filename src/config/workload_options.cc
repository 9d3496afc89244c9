#include "config/workload_options.h"

#include <array>
#include <string_view>

namespace pace {
namespace {

constexpr std::array<std::string_view, 4> kLengthNames = {"lognormal", "exponential", "fixed",
                                                          "file"};
constexpr double kLargestLength = 1e7;

}  // namespace

std::vector<Field> WorkloadOptions::Fields() {
  return {
      Field::Int("prompt_tokens", prompt_tokens, "Tokens of a prompt.")
          .AtLeast(0)
          .AtMost(kLargestLength),
      Field::Enum("length", length, kLengthNames, "The law of response lengths."),
      Field::Real("mean_tokens", mean_tokens, "Mean response length before clipping.")
          .Above(0)
          .AtMost(kLargestLength),
      Field::Real("sigma", sigma, "length lognormal: deviation of the logarithm.")
          .AtLeast(0)
          .AtMost(5),
      Field::Text("lengths_file", lengths_file,
                  "length file: an integer or {\"length\": n} per line."),
      Field::Int("min_tokens", min_tokens, "Shortest response.").AtLeast(1).AtMost(kLargestLength),
      Field::Int("max_tokens", max_tokens, "Response budget, tool output included.")
          .AtLeast(1)
          .AtMost(kLargestLength),
      Field::Real("prompt_share", prompt_share,
                  "Share of the variation in length that belongs to the prompt.")
          .AtLeast(0)
          .AtMost(1),
      Field::Real("difficulty_correlation", difficulty_correlation,
                  "Correlation of that part with difficulty.")
          .AtLeast(-1)
          .AtMost(1),
      Field::Real("pass_rate", pass_rate, "P(correct) of a prompt of middle difficulty.")
          .Above(0)
          .AtMost(0.999999),
      Field::Real("pass_slope", pass_slope, "How fast P(correct) falls with difficulty.")
          .AtLeast(0)
          .AtMost(100),
      Field::Real("drift", drift, "Expected |log-ratio| of a token one version old.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("drift_power", drift_power, "How it grows with versions; 0.5 = random walk.")
          .AtLeast(0)
          .AtMost(4),
      Field::Real("drift_floor", drift_floor, "Expected |log-ratio| without any update.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("drift_prompt_sigma", drift_prompt_sigma, "Spread of drift over prompts.")
          .AtLeast(0)
          .AtMost(5),
      Field::Real("drift_member_sigma", drift_member_sigma, "Spread of drift within a group.")
          .AtLeast(0)
          .AtMost(5),
      Field::Int("max_turns", max_turns, "Most turns of a response; 1 = no tools.")
          .AtLeast(1)
          .AtMost(1000),
      Field::Real("mean_turns", mean_turns, "Mean number of turns.").AtLeast(1).AtMost(1000),
      Field::Real("tool_latency_s", tool_latency_s, "Mean time of a tool call, seconds.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("tool_latency_sigma", tool_latency_sigma, "Deviation of its logarithm.")
          .AtLeast(0)
          .AtMost(5),
      Field::Int("tool_tokens", tool_tokens, "Tokens a tool call adds to the context.")
          .AtLeast(0)
          .AtMost(kLargestLength),
      Field::Int("tool_concurrency", tool_concurrency,
                 "Tool calls running at once over all engines; 0 = any number.")
          .AtLeast(0)
          .AtMost(1e6),
  };
}

Status WorkloadOptions::Validate() const {
  if (min_tokens > max_tokens) {
    return InvalidArgument("workload.min_tokens = ", min_tokens,
                           ": must be <= workload.max_tokens = ", max_tokens);
  }
  if (mean_turns > static_cast<double>(max_turns)) {
    return InvalidArgument("workload.mean_turns = ", mean_turns,
                           ": must be <= workload.max_turns = ", max_turns);
  }
  // Each turn generates at least one token.
  const int64_t least = max_turns + (max_turns - 1) * tool_tokens;
  if (max_turns > 1 && least > max_tokens) {
    return InvalidArgument("workload.max_tokens = ", max_tokens, ": must be >= ", least, " (",
                           max_turns, " turns with their tool output)");
  }
  if (length == LengthLaw::kFile && lengths_file.empty()) {
    return InvalidArgument(
        "workload.lengths_file = \"\": must name a file where workload.length is file");
  }
  return Status::Ok();
}

std::vector<Field> ChangeOptions::Fields() {
  return {
      Field::Int("step", step, "The step that begins in the changed world; 0 = never.")
          .AtLeast(0)
          .AtMost(1e9),
      Field::Real("length", length,
                  "Responses started from then on are this many times as long, up to "
                  "workload.max_tokens.")
          .Above(0)
          .AtMost(100),
      Field::Real("trainer_speed", trainer_speed, "The trainer is this many times as fast.")
          .Above(0)
          .AtMost(100),
      Field::Int("lost_engines", lost_engines, "Engines that leave and do not return.")
          .AtLeast(0)
          .AtMost(1e6),
  };
}

std::vector<Field> CompareOptions::Fields() {
  return {
      Field::TextList("methods", methods,
                      "Methods to run side by side: sync, async, raw, generation, waiting, "
                      "effective, stale-K, oldest-K."),
      Field::TextList("overrides", overrides, "method:key=value, for that method only."),
      Field::TextList("reference", reference,
                      "method:seconds, step times measured elsewhere to print beside ours."),
  };
}

}  // namespace pace
