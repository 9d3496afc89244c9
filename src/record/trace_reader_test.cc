#include "record/trace_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "record/run_writer.h"

namespace pace {
namespace {

constexpr char kMember[] = R"({"completed": 2, "segments": [[1, 5], [2, 5]], "prefix_score": 0.5})";

std::string GroupLine(const std::string& members, const std::string& id = "1") {
  return "{\"group\": " + id + ", \"members\": [" + members + "]}";
}

// The error of one line read alone, or "ok".
std::string ParseError(const std::string& line) {
  const Result<TraceLine> parsed = ParseTraceLine(line);
  return parsed.ok() ? "ok" : parsed.status().message();
}

std::string MemberError(const std::string& member) {
  return ParseError(GroupLine(member));
}

// The error of reading a whole file, without the path, or "ok".
std::string ReadError(const std::string& text) {
  const std::string path = testing::TempDir() + "trace_reader_test.jsonl";
  std::ofstream(path, std::ios::binary) << text;
  Result<TraceReader> reader = TraceReader::Open(path);
  while (true) {
    const auto line = reader->Next();
    if (!line.ok()) {
      EXPECT_EQ(line.status().message().find(path + ":"), 0u) << line.status().message();
      EXPECT_EQ(line.status().message().find('\n'), std::string::npos);
      return line.status().message().substr(path.size() + 1);
    }
    if (!line->has_value()) return "ok";
  }
}

TEST(TraceReaderTest, ReadsAStepAndAGroup) {
  const auto step = std::get<TraceStep>(
      *ParseTraceLine(R"({"step": 3, "occupancy": 9, "batch": 4, "served": 2})"));
  EXPECT_EQ(step.step, PolicyVersion(3));
  EXPECT_EQ(step.occupancy, 9);
  EXPECT_EQ(step.batch, 4);
  EXPECT_EQ(step.served, PolicyVersion(2));
  const auto group = std::get<TraceGroup>(*ParseTraceLine(GroupLine(kMember, "17")));
  EXPECT_EQ(group.group, GroupId(17));
  ASSERT_EQ(group.members.size(), 1u);
  EXPECT_EQ(group.members[0].completed, PolicyVersion(2));
  EXPECT_EQ(group.members[0].prefix_score, 0.5);
  EXPECT_EQ(group.members[0].segments,
            (std::vector<Segment>{{PolicyVersion(1), 5}, {PolicyVersion(2), 5}}));
  EXPECT_FALSE(group.states_served);
}

TEST(TraceReaderTest, KeysMayComeInAnyOrderAndPrefixScoreMayBeNull) {
  EXPECT_EQ(ParseError(R"({"occupancy": 0, "step": 0})"), "ok");
  EXPECT_EQ(MemberError(R"({"prefix_score": null, "segments": [[0, 1]], "completed": 0})"), "ok");
  EXPECT_EQ(MemberError(R"({"prefix_score": 0, "segments": [[0, 1]], "completed": 0})"), "ok");
}

TEST(TraceReaderTest, RefusesUnknownMissingAndDuplicateKeys) {
  EXPECT_EQ(ParseError(R"({"step": 1, "occupancy": 2, "x": 3})"), "x: unknown key");
  EXPECT_EQ(ParseError(R"({"step": 1})"), "missing key occupancy");
  EXPECT_EQ(ParseError("{}"), "missing key step or group");
  EXPECT_EQ(ParseError(R"({"group": 1})"), "missing key members");
  EXPECT_EQ(ParseError(R"({"step": 1, "step": 1, "occupancy": 2})"),
            "step: given twice in one object");
  EXPECT_EQ(ParseError(R"({"step": 1, "occupancy": 2, "group": 1, "members": [)" +
                       std::string(kMember) + "]}"),
            "a line is a step or a group, not both");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[1, 5]]})"),
            "members[0]: missing key prefix_score");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[1, 5]], "prefix_score": null, "c": 1})"),
            "members[0].c: unknown key");
  EXPECT_EQ(ParseError(R"({"group": 1, "batch": 3, "members": [)" + std::string(kMember) + "]}"),
            "batch: unknown key of a group line");
}

TEST(TraceReaderTest, RefusesWrongTypesAndNumbersOutOfBounds) {
  EXPECT_EQ(ParseError(R"({"step": "1", "occupancy": 2})"), "step = \"1\": must be an integer");
  EXPECT_EQ(ParseError(R"({"step": 1.0, "occupancy": 2})"),
            "step = 1.0: must be an integer (versions count steps)");
  EXPECT_EQ(ParseError(R"({"step": 1, "occupancy": -2})"),
            "occupancy = -2: must be >= 0 (groups in the pool)");
  EXPECT_EQ(ParseError(R"({"step": 1e400, "occupancy": 2})"),
            "step = 1e400: must be an integer (versions count steps)");
  EXPECT_EQ(ParseError(R"({"step": 9223372036854775807, "occupancy": 2})"),
            "step = 9223372036854775807: must be <= 1000000000000 (versions count steps)");
  EXPECT_EQ(ParseError(R"({"step": true, "occupancy": 2})"), "step = true: must be an integer");
  EXPECT_EQ(ParseError(R"({"group": 1, "members": {}})"), "members: must be a list in brackets");
  EXPECT_EQ(ParseError("[1]"), "must be an object in braces");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[1, 5]], "prefix_score": NaN})"),
            "members[0].prefix_score = NaN: must be a finite number");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[1, 5]], "prefix_score": 1e999})"),
            "members[0].prefix_score = 1e999: must be a finite number "
            "(a mean of absolute differences)");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[1, 5]], "prefix_score": -0.5})"),
            "members[0].prefix_score = -0.5: must be >= 0 (a mean of absolute differences)");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[1, 0]], "prefix_score": null})"),
            "members[0].segments[0][1] = 0: must be >= 1 (leave an empty segment out)");
}

TEST(TraceReaderTest, RefusesSegmentsThatNoResponseCanHave) {
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[2, 5], [1, 5]], "prefix_score": null})"),
            "members[0].segments[1][0] = 1: must be >= 2 (segments are in generation order)");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[3, 5]], "prefix_score": null})"),
            "members[0].completed = 2: must be >= 3 "
            "(a response cannot finish before a version that sampled it)");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [], "prefix_score": null})"),
            "members[0].segments: must hold at least one segment");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[1]], "prefix_score": null})"),
            "members[0].segments[0]: must be [version, tokens]");
  EXPECT_EQ(MemberError(R"({"completed": 2, "segments": [[1, 2, 3]], "prefix_score": null})"),
            "members[0].segments[0][2]: must be [version, tokens], nothing more");
  EXPECT_EQ(ParseError(R"({"group": 1, "members": []})"), "members: must hold at least one member");
}

TEST(TraceReaderTest, RefusesRulesBrokenBetweenLines) {
  const std::string step = "{\"step\": 3, \"occupancy\": 1}\n";
  EXPECT_EQ(ReadError(step + GroupLine(kMember) + "\n"), "ok");
  EXPECT_EQ(ReadError(GroupLine(kMember) + "\n"),
            "1: group = 1: must follow a step line (a draw belongs to a step)");
  EXPECT_EQ(ReadError(step + step), "2: step = 3: must be > 3 (steps increase)");
  EXPECT_EQ(ReadError("{\"step\": 1, \"occupancy\": 1}\n" + GroupLine(kMember) + "\n"),
            "2: members[0].completed = 2: must be <= step = 1 "
            "(a group is drawn after it is complete)");
  EXPECT_EQ(ReadError(step + GroupLine(kMember) + "\n" + GroupLine(kMember) + "\n"),
            "3: group = 1: must be drawn once (it came before)");
  EXPECT_EQ(ReadError("{\"step\": 1, \"occupancy\": 1, \"served\": 2}\n"),
            "1: served = 2: must be <= step = 1 (no worker is ahead of the trainer)");
}

TEST(TraceReaderTest, RefusesFilesThatAreCutOrNoText) {
  const std::string step = "{\"step\": 3, \"occupancy\": 1}\n";
  EXPECT_EQ(ReadError(step + "{\"step\": 4, \"occup"),
            "2: column 19: not JSON: a text without its closing quote "
            "(the file ends within this line)");
  EXPECT_EQ(ReadError(step + "\n"), "2: must be an object in braces");
  EXPECT_EQ(ReadError(step + "{\"\xff\": 1}\n"), "2: column 3: not JSON: not UTF-8");
  EXPECT_EQ(ReadError(step + std::string("{\"step\0\": 4}\n", 13)),
            "2: column 7: not JSON: control character in a text");
  EXPECT_EQ(ReadError(step + "{\"step\": 4, \"occupancy\": 1}"), "ok");
}

TEST(TraceReaderTest, ServedCarriesOnUntilALineStatesAnother) {
  const std::string path = testing::TempDir() + "trace_served.jsonl";
  const std::string member = R"([{"completed": 1, "segments": [[1, 5]], "prefix_score": null}])";
  std::ofstream(path) << "{\"step\": 3, \"occupancy\": 1, \"served\": 2}\n"
                      << "{\"group\": 1, \"members\": " << member << "}\n"
                      << "{\"group\": 2, \"members\": " << member << ", \"served\": 3}\n"
                      << "{\"group\": 3, \"members\": " << member << "}\n"
                      << "{\"group\": 4, \"members\": " << member << ", \"served\": null}\n"
                      << "{\"group\": 5, \"members\": " << member << "}\n";
  Result<TraceReader> reader = TraceReader::Open(path);
  (void)reader->Next();
  std::vector<std::optional<PolicyVersion>> served;
  for (int i = 0; i < 5; ++i) served.push_back(std::get<TraceGroup>(**reader->Next()).served);
  EXPECT_EQ(served,
            (std::vector<std::optional<PolicyVersion>>{
                PolicyVersion(2), PolicyVersion(3), PolicyVersion(3), std::nullopt, std::nullopt}));
}

TEST(TraceReaderTest, ReadsWhatRunWriterWrites) {
  const std::string directory = testing::TempDir() + "trace_round_trip";
  std::filesystem::remove_all(directory);
  auto writer = RunWriter::Create(directory, Settings(), {"a", "sim"}, RecordLevel::kFull);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  StepPlan plan;
  plan.step = PolicyVersion(5);
  plan.occupancy = 40;
  ASSERT_TRUE((*writer)->WriteTraceStep(plan, 12, PolicyVersion(5)).ok());
  const Segment segments[] = {{PolicyVersion(3), 10}, {PolicyVersion(4), 30}};
  const TraceMember member{PolicyVersion(5), segments, 0.1};
  ASSERT_TRUE((*writer)->WriteTraceDraw(GroupId(8), {{member, member}}, PolicyVersion(5)).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  Result<TraceReader> reader = TraceReader::Open(directory + "/trace.jsonl");
  const auto step = std::get<TraceStep>(**reader->Next());
  EXPECT_EQ(step.batch, 12);
  const auto group = std::get<TraceGroup>(**reader->Next());
  EXPECT_EQ(group.members.size(), 2u);
  EXPECT_EQ(group.members[1].prefix_score, 0.1);
  EXPECT_EQ(group.served, PolicyVersion(5));
  EXPECT_FALSE(reader->Next()->has_value());
}

// Every prefix of a valid line, and every line with one byte changed, is read
// or refused with one line, never more.
TEST(TraceReaderTest, DamagedLinesAreRefusedInOneLine) {
  const std::string line = GroupLine(std::string(kMember) + ", " + kMember);
  for (size_t i = 0; i < line.size(); ++i) {
    const Result<TraceLine> cut = ParseTraceLine(std::string_view(line).substr(0, i));
    ASSERT_FALSE(cut.ok()) << i;
    for (const char byte : {'\0', '\n', '"', '{', ']', '9', '-', '\xff', 'e'}) {
      std::string damaged = line;
      damaged[i] = byte;
      const Result<TraceLine> parsed = ParseTraceLine(damaged);
      if (parsed.ok()) continue;
      ASSERT_EQ(parsed.status().message().find('\n'), std::string::npos);
      ASSERT_LT(parsed.status().message().size(), 400u);
    }
  }
}

}  // namespace
}  // namespace pace
