#include "config/reward_options.h"

#include <array>

#include "core/printable.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 3> kFailureNames = {"fail_group", "zero", "stop"};
constexpr std::string_view kPythonPrefix = "python:";
constexpr double kMaxRewardMib = 1 << 20;

bool IsIdentifier(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

}  // namespace

std::vector<Field> RewardOptions::Fields() {
  return {
      Field::Text("python", python,
                  "The interpreter of a reward in Python; a bare name is looked up in PATH."),
      Field::Int("num_workers", num_workers, "Processes that compute rewards at a time.")
          .AtLeast(1)
          .AtMost(1024),
      Field::Int("batch", batch,
                 "Responses of one call. 1 = the function takes one response; more = it takes "
                 "lists of at most this many.")
          .AtLeast(1)
          .AtMost(65536),
      Field::Real("timeout", timeout, "Seconds of one call; then its process is ended.")
          .Above(0)
          .AtMost(86400),
      Field::Real("start_timeout", start_timeout,
                  "Seconds until a process has imported the file of the reward.")
          .Above(0)
          .AtMost(86400),
      Field::Int("memory_mib", memory_mib,
                 "MiB of address space of one process; 0 = no bound, for rewards that use a GPU.")
          .AtLeast(0, "0 = no bound")
          .AtMost(kMaxRewardMib),
      Field::Enum(
          "on_error", on_error, kFailureNames,
          "What follows when a call raises, hangs, crashes or gives no number: fail_group = "
          "the group is dropped and another prompt taken; zero = the reward is 0; stop = "
          "the run ends."),
  };
}

Result<std::optional<PythonReward>> PythonRewardOf(std::string_view verifier) {
  if (!verifier.starts_with(kPythonPrefix)) return std::optional<PythonReward>();
  const std::string_view rest = verifier.substr(kPythonPrefix.size());
  const size_t colon = rest.rfind(':');
  const std::string_view file = rest.substr(0, colon);
  const std::string_view function =
      colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  if (file.empty() || !IsIdentifier(function)) {
    return InvalidArgument("task.verifier = ", Printable(verifier),
                           ": must be python:FILE:FUNCTION, as python:my_rewards.py:score");
  }
  return std::optional(PythonReward{std::string(file), std::string(function)});
}

}  // namespace pace
