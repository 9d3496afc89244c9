// The Python peer gives the verdicts that PaceAdmission gives; otherwise its
// times would be those of something else.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/peer.h"
#include "control/pace_admission.h"
#include "control/test_groups.h"
#include "core/test_data.h"

namespace pace {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::vector<Json> ParseLines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

Result<std::string> RunNaiveController(const std::vector<std::string>& arguments,
                                       const std::string& input_path, Seconds timeout) {
  std::vector<std::string> words = {"python3", "-I", "-c", PeerScript("naive_controller.py")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunProgram(words, input_path, timeout);
}

std::vector<Json> PeerVerdicts(const fs::path& config, const fs::path& trace) {
  const Result<std::string> text =
      RunNaiveController({"--verdicts", config.string()}, trace.string(), Seconds(120));
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? ParseLines(*text) : std::vector<Json>{};
}

Json Optional(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json PlanJson(const StepPlan& plan) {
  return {{"step", plan.step.step()},
          {"target_rate", Optional(plan.target_rate)},
          {"smoothed_rate", Optional(plan.smoothed_rate)},
          {"budget", Optional(plan.budget)},
          {"cutoff", Optional(plan.cutoff)}};
}

Json DecisionJson(GroupId group, const Decision& decision) {
  return {{"group", group.value()},
          {"waiting", decision.waiting},
          {"generation", decision.generation},
          {"prefix_score", Optional(decision.prefix_score)},
          {"percentile", Optional(decision.percentile)},
          {"weight", decision.weight},
          {"score", decision.score},
          {"verdict", Name(decision.verdict)},
          {"reason", Name(decision.reason)}};
}

// A random trace, what it was made with, and what PaceAdmission says to it.
struct RandomTrace {
  Json config;
  std::vector<Json> lines;
  std::vector<Json> expected;
};

AdmissionOptions RandomOptions(TestRandom& random) {
  AdmissionOptions options;
  options.target_occupancy = random.Below(30);
  options.beta = random.Unit();
  options.max_budget = random.Unit();
  options.window = 20 + random.Below(100);
  options.min_observations = 1 + random.Below(20);
  options.gamma = 0.5 * static_cast<double>(1 + random.Below(10));
  options.wait_weight = random.Chance(0.3) ? 0.0 : 1.0;
  options.generation_weight = random.Chance(0.6) ? GenerationWeight::kPrefix
                                                 : static_cast<GenerationWeight>(random.Below(3));
  options.unscored_weight = 0.25 * static_cast<double>(random.Below(5));
  return options;
}

Json ConfigJson(const AdmissionOptions& options) {
  const char* const weights[] = {"prefix", "one", "zero"};
  return {{"config",
           {{"policy", "pace"},
            {"target_occupancy", *options.target_occupancy},
            {"beta", options.beta},
            {"max_budget", options.max_budget},
            {"window", *options.window},
            {"min_observations", options.min_observations},
            {"gamma", options.gamma},
            {"wait_weight", options.wait_weight},
            {"generation_weight", weights[static_cast<size_t>(options.generation_weight)]},
            {"unscored_weight", options.unscored_weight}}}};
}

// RandomGroup keeps no segments; any with this mean lag will do. Lags there are
// sums of whole steps over at most twelve tokens.
Json MemberJson(const MemberSummary& member) {
  const auto lag_sum = static_cast<int64_t>(
      std::llround(member.generation * static_cast<double>(member.num_tokens)));
  const int64_t completed = member.completed.step();
  const int64_t whole = lag_sum / member.num_tokens;
  const int64_t rest = lag_sum % member.num_tokens;
  Json segments = Json::array();
  if (rest > 0) segments.push_back({completed - whole - 1, rest});
  segments.push_back({completed - whole, member.num_tokens - rest});
  return {{"completed", completed},
          {"segments", segments},
          {"prefix_score", Optional(member.prefix_score)}};
}

RandomTrace MakeTrace(uint64_t seed) {
  TestRandom random(seed);
  const AdmissionOptions options = RandomOptions(random);
  PaceAdmission policy(options, /*batch=*/12, seed);
  RandomTrace trace{.config = ConfigJson(options), .lines = {}, .expected = {}};
  int64_t next_id = 0;
  for (int64_t step = 1; step <= 40; ++step) {
    const int64_t occupancy = random.Below(80);
    trace.lines.push_back({{"step", step}, {"occupancy", occupancy}});
    trace.expected.push_back(
        PlanJson(policy.BeginStep(PolicyVersion(step), {.occupancy = occupancy, .batch = 12})));
    const int64_t num_draws = random.Below(25);
    for (int64_t d = 0; d < num_draws; ++d) {
      const TestGroup group = RandomGroup(random, GroupId(next_id++), PolicyVersion(step));
      Json members = Json::array();
      for (const MemberSummary& member : group.members) members.push_back(MemberJson(member));
      trace.lines.push_back({{"group", group.summary.id.value()}, {"members", members}});
      const Decision decision = policy.Judge(group.summary);
      policy.Observe(group.summary, decision);
      trace.expected.push_back(DecisionJson(group.summary.id, decision));
    }
  }
  return trace;
}

// The same, but for the last bits of numbers: Python's powers are the C library's.
testing::AssertionResult SameLine(const Json& peer, const Json& ours) {
  if (peer.size() != ours.size()) return testing::AssertionFailure() << peer << " and " << ours;
  for (const auto& [key, value] : ours.items()) {
    if (!peer.contains(key)) return testing::AssertionFailure() << peer << " has no " << key;
    const Json& other = peer[key];
    const bool same = value.is_number_float() && other.is_number()
                          ? std::abs(other.get<double>() - value.get<double>()) <=
                                1e-15 * std::abs(value.get<double>())
                          : other == value;
    if (!same) return testing::AssertionFailure() << key << ": " << peer << " and " << ours;
  }
  return testing::AssertionSuccess();
}

TEST(NaiveControllerTest, AgreesWithPaceAdmissionOnRandomTraces) {
  const fs::path directory = fs::path(testing::TempDir()) / "naive_controller_test";
  fs::create_directories(directory);
  int64_t num_rejected = 0, num_weighted = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const RandomTrace trace = MakeTrace(seed);
    const fs::path config_path = directory / Concat(seed, ".json");
    const fs::path trace_path = directory / Concat(seed, ".trace.jsonl");
    std::ofstream(config_path) << trace.config;
    std::ofstream file(trace_path);
    for (const Json& line : trace.lines) file << line << "\n";
    file.close();
    const std::vector<Json> verdicts = PeerVerdicts(config_path, trace_path);
    ASSERT_EQ(verdicts.size(), trace.expected.size());
    for (size_t i = 0; i < verdicts.size(); ++i) {
      ASSERT_TRUE(SameLine(verdicts[i], trace.expected[i])) << "seed " << seed << " line " << i + 1;
      num_rejected += verdicts[i].value("verdict", "") == "reject";
      num_weighted += verdicts[i].contains("group") && !verdicts[i]["percentile"].is_null();
    }
  }
  fs::remove_all(directory);
  EXPECT_GT(num_rejected, 200);  // the traces exercise the rules
  EXPECT_GT(num_weighted, 200);
}

void ExpectNear(const Json& got, const Json& want, const std::string& where) {
  ASSERT_EQ(got.size(), want.size()) << where;
  for (const auto& [key, value] : want.items()) {
    ASSERT_TRUE(got.contains(key)) << where << " " << key;
    if (value.is_number()) {
      ASSERT_TRUE(got[key].is_number()) << where << " " << key;
      const double expected = value.get<double>();
      ASSERT_NEAR(got[key].get<double>(), expected, 1e-12 * std::abs(expected))
          << where << " " << key;
    } else {
      ASSERT_EQ(got[key], value) << where << " " << key;
    }
  }
}

TEST(NaiveControllerTest, AgreesWithTheReferenceTraces) {
  const fs::path directory = SharedData() / "admission";
  if (!fs::is_directory(directory)) {
    GTEST_SKIP() << WithoutData(directory, 7014);
  }
  int64_t num_lines = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".trace.jsonl")) continue;
    const std::string stem = name.substr(0, name.find('.'));
    std::ostringstream expected_text;
    expected_text << std::ifstream(directory / (stem + ".expected.jsonl")).rdbuf();
    const std::vector<Json> expected = ParseLines(expected_text.str());
    const std::vector<Json> verdicts = PeerVerdicts(directory / (stem + ".json"), entry.path());
    ASSERT_EQ(verdicts.size(), expected.size()) << stem;
    for (size_t i = 0; i < expected.size(); ++i) {
      ExpectNear(verdicts[i], expected[i], Concat(stem, " line ", i + 1));
      if (HasFatalFailure()) return;
      ++num_lines;
    }
  }
  EXPECT_GT(num_lines, 1000);
}

TEST(NaiveControllerTest, AFailingScriptAndASlowOneAreErrors) {
  EXPECT_FALSE(RunNaiveController({"--nonsense"}, "/dev/null", Seconds(60)).ok());
  const Result<std::string> slow =
      RunNaiveController({"--bench", "60", "512", "200", "400"}, "/dev/null", Seconds(0.05));
  ASSERT_FALSE(slow.ok());
  EXPECT_EQ(slow.status().message(), "python3: did not end within 0.05 s");
}

}  // namespace
}  // namespace pace
