#include "record/run_warnings.h"

#include <cmath>
#include <utility>

#include "core/concat.h"
#include "core/json_record.h"
#include "core/utf8.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, kNumWarningKinds> kNames = {
    "warming_up",     "equal_rewards",    "never_correct",  "skipped_updates", "over_budget",
    "dropped_groups", "ignored_settings", "failed_rewards", "rounded_rollouts"};

// One step may be bad luck.
constexpr int64_t kEqualSteps = 2;
constexpr int64_t kWrongSteps = 2;
// A share of the draws above the budget that chance does not explain.
constexpr double kFarAboveBudget = 0.25;
constexpr int64_t kFewDraws = 4;
// Batches of groups that dynamic sampling may drop before a word is said.
constexpr int64_t kDroppedBatches = 4;
constexpr int64_t kMaxStep = 1'000'000'000'000;

std::string Percent(double share) {
  const double percent = 100 * share;
  const double rounded = percent < 9.95 ? std::round(percent * 10) / 10 : std::round(percent);
  return Concat(rounded, " %");
}

std::string Plural(int64_t count, std::string_view thing) {
  return Concat(count, " ", thing, count == 1 ? "" : "s");
}

}  // namespace

std::string_view Name(WarningKind kind) {
  return kNames.at(static_cast<size_t>(kind));
}

std::optional<WarningKind> WarningKindFromName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<WarningKind>(i);
  }
  return std::nullopt;
}

template <typename V>
void JsonKeys(V& v, RunWarning& warning) {
  v.Optional("step", Within(warning.step, 0, kMaxStep));
  v.Optional("kind", AsName(warning.kind, WarningKindFromName, "must be a kind that pace writes"));
  v("text", warning.text);
  v.SkipUnknown();
}

std::string WarningLine(const RunWarning& warning) {
  RunWarning mended = warning;
  mended.text = ReplaceIllFormed(mended.text);
  return JsonOf(mended);
}

Result<RunWarning> ParseWarningLine(std::string_view line) {
  RunWarning warning;
  PACE_RETURN_IF_ERROR(FromJson(line, warning));
  return warning;
}

std::string OneLine(std::string_view text, size_t most_characters) {
  std::string out;
  bool space = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadCodePoint(text, at);
    const bool control = point.code <= 0x20 || (point.code >= 0x7F && point.code < 0xA0) ||
                         point.code == 0x2028 || point.code == 0x2029;
    if (control) {
      space = !out.empty();
    } else {
      if (std::exchange(space, false)) out += ' ';
      out += point.well_formed ? text.substr(at, point.num_bytes) : kReplacementCharacter;
    }
    at += point.num_bytes;
  }
  const size_t count = CountCodePoints(out);
  if (count <= most_characters) return out;
  return "..." + out.substr(OffsetOfCodePoint(out, count - most_characters));
}

bool RunWarnings::Repeats::Occurs() {
  if (++count < next) return false;
  next = 2 * count;
  return true;
}

void RunWarnings::Add(std::vector<RunWarning>& out, WarningKind kind, int64_t step,
                      std::string text) {
  out.push_back({.kind = kind, .step = step, .text = std::move(text)});
}

std::string RunWarnings::Ask(std::string_view last_response) const {
  std::string out;
  if (!options_.verifier.empty()) out += Concat("; is ", options_.verifier, " right?");
  const std::string shown = OneLine(last_response);
  if (!shown.empty()) out += Concat(" last response: \"", shown, "\"");
  return out;
}

bool RunWarnings::TeachesNothing(const StepFacts& facts, std::vector<RunWarning>& out) {
  const bool equal = options_.compares_members && facts.num_trained > 0 &&
                     facts.num_equal_rewards == facts.num_trained;
  state_.num_equal_steps = equal ? state_.num_equal_steps + 1 : 0;
  if (state_.num_equal_steps < kEqualSteps) return false;
  if (state_.repeats[static_cast<size_t>(WarningKind::kEqualRewards)].Occurs()) {
    Add(out, WarningKind::kEqualRewards, facts.step,
        Concat("no group had two different rewards in the last ", state_.num_equal_steps,
               " steps: nothing is learned",
               state_.any_correct ? "" : "; no response was ever correct",
               Ask(facts.last_response)));
  }
  return true;
}

void RunWarnings::CheckBudget(const StepFacts& facts, std::vector<RunWarning>& out) {
  if (!facts.budget.has_value() || facts.num_rejected < kFewDraws) return;
  const double realised =
      static_cast<double>(facts.num_rejected) / static_cast<double>(facts.num_offered);
  if (realised < *facts.budget + kFarAboveBudget) return;
  if (!state_.repeats[static_cast<size_t>(WarningKind::kOverBudget)].Occurs()) return;
  Add(out, WarningKind::kOverBudget, facts.step,
      Concat(
          "step ", facts.step, " rejected ", facts.num_rejected, " of ", facts.num_offered,
          " groups (", Percent(realised), ") at a budget of ", Percent(*facts.budget),
          ": the budget is a quantile of recent scores and does not bound what one step rejects"));
}

std::vector<RunWarning> RunWarnings::OnStep(const StepFacts& facts) {
  std::vector<RunWarning> out;
  state_.num_dropped = 0;
  if (facts.num_correct > 0) state_.any_correct = true;
  if (facts.warming_up && state_.repeats[static_cast<size_t>(WarningKind::kWarmingUp)].Occurs()) {
    Add(out, WarningKind::kWarmingUp, facts.step,
        Concat(options_.method, " is warming up: ", facts.num_scores, " of ",
               options_.min_observations, " scores; nothing is rejected yet"));
  }
  const bool nothing_learned = TeachesNothing(facts, out);
  if (!state_.any_correct && facts.num_responses > 0) {
    ++state_.num_wrong_steps;
    state_.num_wrong_responses += facts.num_responses;
    // One line is enough where rewards are equal as well.
    const bool says_so = state_.num_wrong_steps >= kWrongSteps && !nothing_learned;
    if (says_so && state_.repeats[static_cast<size_t>(WarningKind::kNeverCorrect)].Occurs()) {
      Add(out, WarningKind::kNeverCorrect, facts.step,
          Concat("none of ", Plural(state_.num_wrong_responses, "response"), " was correct",
                 Ask(facts.last_response)));
    }
  }
  if (facts.num_skipped_updates > 0 &&
      state_.repeats[static_cast<size_t>(WarningKind::kSkippedUpdates)].Occurs()) {
    Add(out, WarningKind::kSkippedUpdates, facts.step,
        Concat("step ", facts.step,
               " skipped an update whose loss or gradient was not finite: the weights stay as "
               "they were (lower train.learning_rate, or look at train/grad_norm)"));
  }
  CheckBudget(facts, out);
  return out;
}

std::vector<RunWarning> RunWarnings::OnGroupDropped(int64_t step, int64_t batch,
                                                    std::string_view last_response) {
  std::vector<RunWarning> out;
  ++state_.num_dropped;
  if (state_.num_dropped % (kDroppedBatches * batch) != 0) return out;
  if (!state_.repeats[static_cast<size_t>(WarningKind::kDroppedGroups)].Occurs()) return out;
  Add(out, WarningKind::kDroppedGroups, step,
      Concat("train.dynamic_sampling dropped ", state_.num_dropped,
             " groups of equal rewards since step ", step, " began to fill", Ask(last_response)));
  return out;
}

std::vector<RunWarning> RunWarnings::OnFailedReward(int64_t step, std::string_view text,
                                                    bool last) {
  std::vector<RunWarning> out;
  const bool occurs = state_.failed_rewards.Occurs();
  if (!occurs && !last) return out;
  const int64_t count = state_.failed_rewards.count;
  Add(out, WarningKind::kFailedRewards, step,
      count == 1 ? std::string(text) : Concat(text, " (", count, " so far)"));
  return out;
}

}  // namespace pace
