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
      Field::Int("num_workers", num_workers,
                 "Processes that compute rewards at a time; connections to a server of rewards.")
          .AtLeast(1)
          .AtMost(1024),
      Field::Int("batch", batch,
                 "Responses of one call. 1 = the function takes one response; more = it takes "
                 "lists of at most this many.")
          .AtLeast(1)
          .AtMost(65536),
      Field::Real("timeout", timeout,
                  "Seconds of one call; then its process is ended, or the connection closed.")
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
      Field::Int("num_retries", num_retries,
                 "Further attempts of a batch that a server of rewards did not answer, after "
                 "pauses that double from half a second.")
          .AtLeast(0)
          .AtMost(1000),
      Field::Enum(
          "on_error", on_error, kFailureNames,
          "What follows when a call raises, hangs, crashes or gives no number: fail_group = "
          "the group is dropped and another prompt taken; zero = the reward is 0; stop = "
          "the run ends."),
  };
}

Result<std::optional<PythonName>> PythonNameOf(std::string_view key, std::string_view value) {
  if (!value.starts_with(kPythonPrefix)) return std::optional<PythonName>();
  const std::string_view rest = value.substr(kPythonPrefix.size());
  const size_t colon = rest.rfind(':');
  const std::string_view file = rest.substr(0, colon);
  const std::string_view name =
      colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  if (file.empty() || !IsIdentifier(name)) {
    const std::string_view form = key == "tools.use" ? "python:FILE:CLASS, as python:my_env.py:Env"
                                  : key == "admission.policy"
                                      ? "python:FILE:CLASS, as python:my_policy.py:Policy"
                                      : "python:FILE:FUNCTION, as python:my_rewards.py:score";
    return InvalidArgument(key, " = ", Printable(value), ": must be ", form);
  }
  return std::optional(PythonName{std::string(file), std::string(name)});
}

Result<std::optional<OwnReward>> OwnRewardOf(std::string_view verifier) {
  if (verifier.starts_with("http://") || verifier.starts_with("https://")) {
    return std::optional(OwnReward{.url = std::string(verifier)});
  }
  PACE_ASSIGN_OR_RETURN(const auto python, PythonNameOf("task.verifier", verifier));
  if (!python.has_value()) return std::optional<OwnReward>();
  return std::optional(OwnReward{.python = *python});
}

}  // namespace pace
