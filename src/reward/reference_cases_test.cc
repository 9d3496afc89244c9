// The reference files of the verifiers, case by case.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>

#include "core/concat.h"
#include "core/json_scanner.h"
#include "core/test_data.h"
#include "reward/verifier.h"

namespace pace {
namespace {

// The text of data/verify/NAME, none where there is no such data.
std::optional<std::string> ReadReference(const std::string& name) {
  std::ifstream file(SharedData() / "verify" / name, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Calls `check` for every object of the list; `field` reads a value by its key.
using Field = std::function<void(JsonScanner&)>;
size_t ForEachCase(const std::string& text, const Field& field,
                   const std::function<void(size_t)>& check) {
  size_t num_cases = 0;
  JsonScanner scan(text);
  scan.EnterArray();
  while (scan.NextItem()) {
    scan.EnterObject();
    while (scan.NextKey()) field(scan);
    check(num_cases++);
  }
  scan.End();
  EXPECT_TRUE(scan.ok()) << scan.status().message();
  return num_cases;
}

TEST(ReferenceCasesTest, DapoIsBitForBitThatOfVerl) {
  const std::optional<std::string> text = ReadReference("dapo_cases.json");
  if (!text.has_value()) GTEST_SKIP() << WithoutData(SharedData() / "verify", 700);
  std::string solution;
  std::string gold;
  std::optional<std::string> extracted;
  bool strict = false;
  bool correct = false;
  double score = 0;
  const Field field = [&](JsonScanner& scan) {
    if (scan.key() == "solution") {
      scan.Text(solution);
    } else if (scan.key() == "gold") {
      scan.Text(gold);
    } else if (scan.key() == "strict_box") {
      scan.Bool(strict);
    } else if (scan.key() == "acc") {
      scan.Bool(correct);
    } else if (scan.key() == "score") {
      scan.Real(-1, 1, "", score);
    } else if (scan.key() == "pred" && scan.TakeNull()) {
      extracted.reset();
    } else {
      scan.Text(extracted.emplace());
    }
  };
  const size_t num_cases = ForEachCase(*text, field, [&](size_t index) {
    const Verification seen =
        Verify(strict ? VerifierMode::kDapoStrict : VerifierMode::kDapo, solution, gold);
    EXPECT_EQ(seen.correct, correct) << index;
    EXPECT_EQ(seen.score, score) << index;
    EXPECT_EQ(seen.extracted, extracted) << index;
  });
  EXPECT_GE(num_cases, 700u);
}

TEST(ReferenceCasesTest, EquivalenceAgrees) {
  const std::optional<std::string> text = ReadReference("equivalence_cases.json");
  if (!text.has_value()) GTEST_SKIP() << WithoutData(SharedData() / "verify", 125);
  std::string gold;
  std::string response;
  int64_t expected = 0;
  const Field field = [&](JsonScanner& scan) {
    if (scan.key() == "gold") {
      scan.Text(gold);
    } else if (scan.key() == "pred") {
      scan.Text(response);
    } else if (scan.key() == "expected") {
      scan.Integer(0, 1, "", expected);
    } else {
      scan.Skip();
    }
  };
  size_t num_same = 0;
  std::string differing;
  const size_t num_cases = ForEachCase(*text, field, [&](size_t index) {
    const bool correct = Verify(VerifierMode::kEquivalence, response, gold).correct;
    if (correct == (expected == 1)) {
      ++num_same;
    } else {
      differing += Concat(" ", index);
    }
  });
  EXPECT_EQ(num_same, num_cases) << "differing:" << differing;
  EXPECT_GE(num_cases, 125u);
}

}  // namespace
}  // namespace pace
