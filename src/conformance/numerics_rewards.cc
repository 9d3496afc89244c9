// Family reward_shaping.
#include "conformance/case_file.h"
#include "conformance/numerics_case.h"
#include "reward/dapo.h"
#include "reward/verifier.h"

namespace pace {
namespace {

void CheckOverlong(NumericsCase& entry) {
  OverlongOptions options;
  options.max_length = static_cast<int64_t>(entry.ConfigReal("max_resp_len").value_or(0));
  options.buffer_length = static_cast<int64_t>(entry.ConfigReal("overlong_buffer_len").value_or(0));
  options.factor = entry.ConfigReal("penalty_factor").value_or(options.factor);
  if (!entry.Check(options.Validate())) return;
  const std::vector<int64_t> lengths = entry.Integers("response_length");
  const std::vector<double> scores = entry.Numbers("score");
  if (lengths.size() != scores.size()) return entry.Fail("inputs: sizes differ");
  std::vector<double> penalties;
  std::vector<double> rewards;
  for (size_t i = 0; i < lengths.size(); ++i) {
    penalties.push_back(OverlongPenalty(lengths[i], options));
    rewards.push_back(scores[i] + penalties.back());
  }
  entry.Use(kSinglePrecision);
  entry.ExpectAll("overlong_reward", penalties);
  entry.ExpectAll("reward", rewards);
}

void CheckRetool(NumericsCase& entry) {
  const Value responses = entry.Input("solution");
  const Value answers = entry.Input("ground_truth");
  const Value results = entry.Expected("results");
  const std::vector<int64_t> turns = entry.Integers("num_turns");
  if (!responses.is_list() || !answers.is_list() || !results.is_list() ||
      responses.list().size() != turns.size() || answers.list().size() != turns.size() ||
      results.list().size() != turns.size()) {
    return entry.Fail("inputs, expected.results: must be lists of one length");
  }
  for (size_t i = 0; i < turns.size(); ++i) {
    const Value& response = responses.list()[i];
    const Value& answer = answers.list()[i];
    const Value& expected = results.list()[i];
    const Value extracted = FieldOf(expected, "pred");
    if (!response.is_text() || !answer.is_text() || !extracted.is_text()) {
      return entry.Fail("solution, ground_truth, pred: must be texts");
    }
    const Verification ours = VerifyRetool(response.text(), answer.text(), turns[i]);
    entry.Compare("score", ours.score, FieldOf(expected, "score"));
    entry.Compare("acc", ours.correct ? 1 : 0, FieldOf(expected, "acc"));
    if (ours.extracted.value_or("") != extracted.text()) {
      entry.Fail(Concat("results[", i, "].pred: ours \"", ours.extracted.value_or(""),
                        "\", expected \"", extracted.text(), "\""));
    }
  }
}

}  // namespace

void CheckRewardShaping(NumericsCase& entry) {
  const std::string part = entry.ConfigText("part");
  if (part == "overlong") return CheckOverlong(entry);
  if (part == "retool") return CheckRetool(entry);
  entry.SkipBecause(Concat("we have no part `", part, "`"));
}

}  // namespace pace
