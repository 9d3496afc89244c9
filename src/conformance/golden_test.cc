// Every kind that needs no LibTorch over the files of tests/golden: what a clone without the
// reference data checks, in every build and under the sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/kinds.h"
#include "core/concat.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

const fs::path& GoldenFolder() {
  static const fs::path folder = fs::path(PACE_SOURCE_DIR) / "tests" / "golden";
  return folder;
}

// The files below `folder` whose path ends like this, in order.
std::vector<fs::path> FilesEnding(const fs::path& folder, std::string_view end) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().generic_string().ends_with(end)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Where the files of a kind are: a folder of the golden files and how their names end.
struct GoldenFiles {
  std::string_view kind;
  std::string_view folder;
  std::string_view end;
};
constexpr GoldenFiles kFiles[] = {
    {"admission", "admission", ".trace.jsonl"},
    {"tokenizers", "tokenizers", "/cases.json"},
    {"chat", "chat", "/chat_cases.json"},
    {"hermes", "tools", "/hermes_cases.json"},
    {"truncation", "tools", "/truncation_cases.json"},
    {"safetensors", "safetensors", "/expected.json"},
    {"numerics", "numerics", ".json"},
    {"dapo", "verify", "/dapo_cases.json"},
    {"equivalence", "verify", "/equivalence_cases.json"},
};

KindArguments ArgumentsFor(std::string_view kind, const fs::path& file) {
  KindArguments arguments;
  arguments.paths = {file.string()};
  if (kind == "chat") arguments.tokenizer = (GoldenFolder() / "tokenizers" / "nfc").string();
  // A folder without a tokenizer names the built-in model whose tokenizer is meant.
  const fs::path folder = file.parent_path();
  if (kind == "tokenizers" && !fs::exists(folder / "tokenizer.json")) {
    arguments.tokenizer = (fs::path(PACE_SOURCE_DIR) / "models" / folder.filename()).string();
  }
  return arguments;
}

Tally CheckFile(const ConformanceKind& kind, const fs::path& file) {
  Tally tally;
  const Status status = kind.check(ArgumentsFor(kind.name, file), tally);
  if (!status.ok()) tally.Fail(status.message());
  return tally;
}

// A kind over its files below `golden`. Problems: failures, what was skipped, a file without a
// case, no file at all.
struct KindRun {
  int64_t num_files = 0;
  int64_t num_passed = 0;
  std::vector<std::string> problems = {};
};

KindRun RunKind(const ConformanceKind& kind, const fs::path& golden) {
  KindRun run;
  for (const GoldenFiles& files : kFiles) {
    if (files.kind != kind.name) continue;
    for (const fs::path& file : FilesEnding(golden / files.folder, files.end)) {
      const Tally tally = CheckFile(kind, file);
      ++run.num_files;
      run.num_passed += tally.num_passed;
      run.problems.insert(run.problems.end(), tally.failures.begin(), tally.failures.end());
      if (tally.num_skipped > 0) {
        run.problems.push_back(Concat(file.string(), ": ", tally.num_skipped, " cases skipped"));
      }
      if (tally.num_passed == 0) run.problems.push_back(file.string() + ": no case passed");
    }
  }
  if (run.num_files == 0) run.problems.push_back(Concat(kind.name, ": has no golden file"));
  return run;
}

class GoldenTest : public testing::TestWithParam<ConformanceKind> {};

TEST_P(GoldenTest, EveryCasePasses) {
  const KindRun run = RunKind(GetParam(), GoldenFolder());
  for (const std::string& problem : run.problems) ADD_FAILURE() << problem;
  RecordProperty("num_passed", std::to_string(run.num_passed));
  std::printf("%s: %lld files, %lld comparisons passed\n", GetParam().name,
              static_cast<long long>(run.num_files), static_cast<long long>(run.num_passed));
}

TEST_P(GoldenTest, AKindThatRanNoCaseIsAProblem) {
  const fs::path empty = fs::path(PACE_BINARY_DIR) / "golden_scratch" / "empty";
  fs::create_directories(empty);
  const KindRun run = RunKind(GetParam(), empty);
  ASSERT_EQ(run.problems.size(), 1U);
  EXPECT_EQ(run.problems.front(), Concat(GetParam().name, ": has no golden file"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenTest, testing::ValuesIn(TorchFreeKinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

std::string ReadText(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// One expected value of a golden file, exchanged for a wrong one.
struct Damage {
  std::string_view kind;
  std::string_view file;    // what is checked
  std::string_view inside;  // the file that is damaged
  std::string_view before;
  std::string_view after;
};
constexpr Damage kDamages[] = {
    {"admission", "admission/effective.trace.jsonl", "admission/effective.expected.jsonl",
     R"("verdict": "reject")", R"("verdict": "admit")"},
    {"admission", "admission/effective.trace.jsonl", "admission/effective.expected.jsonl",
     R"("generation": 0.)", R"("generation": 1.)"},
    {"tokenizers", "tokenizers/nfc/cases.json", "tokenizers/nfc/cases.json",
     R"("text": "a", "ids": [)", R"("text": "a", "ids": [1, )"},
    {"tokenizers", "tokenizers/nfc/cases.json", "tokenizers/nfc/cases.json",
     R"("decoded_skip_special": "The)", R"("decoded_skip_special": "the)"},
    {"tokenizers", "tokenizers/nfc/cases.json", "tokenizers/nfc/cases.json", R"("chunks": [")",
     R"("chunks": ["?)"},
    {"chat", "chat/tools/chat_cases.json", "chat/tools/chat_cases.json", R"("rendered": ")",
     R"("rendered": " )"},
    {"chat", "chat/instruct/chat_cases.json", "chat/instruct/chat_cases.json",
     R"("rendered": "<|begin|>[ASK] How many loaves are left at noon? [/ASK]", "ids": [)",
     R"("error": "none", "ids": [)"},
    {"hermes", "tools/hermes_cases.json", "tools/hermes_cases.json",
     R"({"name": "run", "arguments": ")", R"({"name": "ran", "arguments": ")"},
    {"truncation", "tools/truncation_cases.json", "tools/truncation_cases.json", R"("result": ")",
     R"("result": "?)"},
    {"safetensors", "safetensors/expected.json", "safetensors/expected.json", R"("shape": [2)",
     R"("shape": [3)"},
    {"safetensors", "safetensors/expected.json", "safetensors/expected.json", R"("ok": false)",
     R"("ok": true, "tensors": {})"},
    {"numerics", "numerics/advantages.json", "numerics/advantages.json", R"("returns": [[)",
     R"("returns": [[0.5, )"},
    {"dapo", "verify/dapo_cases.json", "verify/dapo_cases.json", R"("pred": ")", R"("pred": "?)"},
    {"equivalence", "verify/equivalence_cases.json", "verify/equivalence_cases.json",
     R"("expected": true)", R"("expected": false)"},
};

class GoldenCanFailTest : public testing::TestWithParam<Damage> {};

TEST_P(GoldenCanFailTest, OneWrongValueIsOneFailure) {
  const Damage& damage = GetParam();
  std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  std::replace(name.begin(), name.end(), '/', '_');
  const fs::path scratch = fs::path(PACE_BINARY_DIR) / "golden_scratch" / name;
  fs::remove_all(scratch);
  const fs::path folder = fs::path(damage.file).parent_path();
  fs::create_directories(scratch / folder);
  fs::copy(GoldenFolder() / folder, scratch / folder, fs::copy_options::recursive);
  std::string text = ReadText(scratch / damage.inside);
  const size_t at = text.find(damage.before);
  ASSERT_NE(at, std::string::npos) << damage.inside << " holds no " << damage.before;
  text.replace(at, damage.before.size(), damage.after);
  std::ofstream(scratch / damage.inside, std::ios::binary | std::ios::trunc) << text;

  const std::span<const ConformanceKind> kinds = TorchFreeKinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const ConformanceKind& one) {
    return one.name == damage.kind;
  });
  ASSERT_NE(kind, kinds.end());
  const Tally whole = CheckFile(*kind, GoldenFolder() / damage.file);
  const Tally tally = CheckFile(*kind, scratch / damage.file);
  EXPECT_GE(tally.num_failed, 1) << damage.before;
  // Nothing else changes: the file was read as before.
  EXPECT_GE(tally.num_passed, whole.num_passed - 3);
  fs::remove_all(scratch);
}

INSTANTIATE_TEST_SUITE_P(Damages, GoldenCanFailTest, testing::ValuesIn(kDamages));

// A new family of numerics, or a new kind, comes with golden files.
TEST(GoldenFilesTest, EveryFamilyOfNumericsHasAFile) {
  std::vector<std::string> names;
  for (const fs::path& file : FilesEnding(GoldenFolder() / "numerics", ".json")) {
    names.push_back(file.stem().string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"adamw", "advantages", "decoupled_ppo", "kl_penalties",
                                             "logprob_entropy", "m2po", "policy_loss_vanilla",
                                             "policy_loss_variants", "reward_shaping",
                                             "rollout_correction", "topr", "vcpo"}));
}

TEST(GoldenFilesTest, AreSmall) {
  constexpr uintmax_t kMaxFile = 200 << 10;
  constexpr uintmax_t kMaxAll = 900 << 10;
  uintmax_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(GoldenFolder())) {
    if (!entry.is_regular_file()) continue;
    sum += entry.file_size();
    EXPECT_LE(entry.file_size(), kMaxFile) << entry.path();
  }
  EXPECT_LE(sum, kMaxAll);
}

}  // namespace
}  // namespace pace
