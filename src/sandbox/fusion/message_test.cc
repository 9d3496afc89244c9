#include "sandbox/fusion/message.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(FusionRequestTest, ReadsEveryField) {
  const Result<FusionRequest> request = ReadFusionRequest(
      R"({"code": "x = 1", "language": "python", "compile_timeout": 3, "run_timeout": 2.5,
          "memory_limit_MB": 512, "stdin": "in", "files": {"a/b": "Zm9v", "c": null},
          "fetch_files": ["out"], "something_new": [1, {"x": 2}]})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->language, "python");
  EXPECT_EQ(request->program.code, "x = 1");
  EXPECT_EQ(request->program.timeout->count(), 2.5);
  EXPECT_EQ(request->program.memory_bytes, int64_t{512} << 20);
  EXPECT_EQ(request->program.input, "in");
  ASSERT_EQ(request->program.files.size(), 1u);
  EXPECT_EQ(request->program.files[0].content, "foo");
  EXPECT_EQ(request->program.fetch, std::vector<std::string>{"out"});
}

TEST(FusionRequestTest, DefaultsAreSandboxFusions) {
  const Result<FusionRequest> request = ReadFusionRequest(
      R"({"code": "", "language": "python", "memory_limit_MB": -1, "stdin": null})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->program.timeout->count(), 10);
  EXPECT_FALSE(request->program.memory_bytes.has_value());
  EXPECT_EQ(request->program.input, "");
}

TEST(FusionRequestTest, RefusesWhatBreaksARule) {
  for (const char* body :
       {"", "[]", "{}", R"({"code": "x"})", R"({"language": "python"})",
        R"({"code": 1, "language": "python"})",
        R"({"code": "", "language": "python", "run_timeout": 0})",
        R"({"code": "", "language": "python", "run_timeout": "soon"})",
        R"({"code": "", "language": "python", "files": {"../a": ""}})",
        R"({"code": "", "language": "python", "files": {"a": "%"}})",
        R"({"code": "", "language": "python", "fetch_files": ["/etc/passwd"]})"}) {
    EXPECT_FALSE(ReadFusionRequest(body).ok()) << body;
  }
}

ProgramResult Finished(int64_t code) {
  ProgramResult result;
  result.return_code = code;
  result.out = "o";
  result.error = "e";
  result.time = Seconds(0.25);
  return result;
}

TEST(FusionResponseTest, SuccessIsACodeOfZero) {
  EXPECT_EQ(FusionResponseText(Finished(0)),
            R"({"status":"Success","message":"","compile_result":null,"run_result":)"
            R"({"status":"Finished","execution_time":0.25,"return_code":0,"stdout":"o",)"
            R"("stderr":"e"},"executor_pod_name":null,"files":{}})");
  EXPECT_TRUE(FusionResponseText(Finished(1)).starts_with(R"({"status":"Failed","message":"")"));
}

TEST(FusionResponseTest, ATimeoutIsAFailureWithoutACode) {
  ProgramResult result = Finished(0);
  result.return_code.reset();
  result.outcome = ProgramOutcome::kTimeLimit;
  const std::string text = FusionResponseText(result);
  EXPECT_TRUE(text.starts_with(R"({"status":"Failed","message":"")")) << text;
  EXPECT_NE(text.find(R"("status":"TimeLimitExceeded","execution_time":0.25,"return_code":null)"),
            std::string::npos)
      << text;
}

TEST(FusionResponseTest, OurFailureIsASandboxError) {
  const std::string text = FusionResponseText(Unavailable("no place"));
  EXPECT_TRUE(text.starts_with(R"({"status":"SandboxError","message":"no place")")) << text;
  const Result<ProgramResult> read = ReadFusionResponse(text);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().message().find("no place"), std::string::npos);
}

TEST(FusionResponseTest, TheClientReadsWhatTheServerWrote) {
  ProgramResult result = Finished(3);
  result.files = {{"a", std::string("\0\xff", 2)}};
  const Result<ProgramResult> read = ReadFusionResponse(FusionResponseText(result));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->return_code, 3);
  EXPECT_EQ(read->out, "o");
  EXPECT_EQ(read->files[0].content, result.files[0].content);
  EXPECT_EQ(read->time, result.time);
}

TEST(FusionRequestTest, TheServerReadsWhatTheClientWrote) {
  const ProgramRequest program{.code = "x = '\n'",
                               .input = "in",
                               .timeout = Seconds(4),
                               .memory_bytes = int64_t{300} << 20,
                               .files = {{"f", "\x01"}},
                               .fetch = {"g"}};
  const Result<FusionRequest> read = ReadFusionRequest(FusionRequestText(program, Seconds(30)));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->program.code, program.code);
  EXPECT_EQ(read->program.input, program.input);
  EXPECT_EQ(read->program.timeout, program.timeout);
  EXPECT_EQ(read->program.memory_bytes, program.memory_bytes);
  EXPECT_EQ(read->program.files[0].content, "\x01");
  EXPECT_EQ(read->program.fetch, program.fetch);
}

TEST(FusionResponseTest, AnAnswerThatSaysNothingIsAnError) {
  for (const char* body : {"", "{}", R"({"status":"Success"})", R"({"status":"Odd"})",
                           R"({"status":"Success","run_result":{"status":"Error"}})"}) {
    EXPECT_FALSE(ReadFusionResponse(body).ok()) << body;
  }
}

}  // namespace
}  // namespace pace
