#include <gtest/gtest.h>

#include "http/server.h"
#include "sandbox/sandbox.h"

namespace pace {
namespace {

TEST(ToolRunnerTest, DefaultsOfSettingsAreThoseOfTheSandbox) {
  const SandboxOptions from = SandboxOptionsFrom(ToolsOptions());
  const SandboxOptions plain;
  EXPECT_EQ(from.mode, SandboxMode::kIsolated);
  EXPECT_EQ(from.python, plain.python);
  EXPECT_EQ(from.warm_modules, plain.warm_modules);
  EXPECT_EQ(from.max_programs, plain.max_programs);
  EXPECT_EQ(from.timeout, plain.timeout);
  EXPECT_EQ(from.memory_bytes, plain.memory_bytes);
  EXPECT_EQ(from.tmp_bytes, plain.tmp_bytes);
  EXPECT_EQ(from.max_file_bytes, plain.max_file_bytes);
  EXPECT_EQ(from.max_processes, plain.max_processes);
  EXPECT_TRUE(from.Validate().ok());
}

TEST(ToolRunnerTest, UnsafeHasToBeSaid) {
  ToolsOptions options;
  options.sandbox = SandboxKind::kUnsafe;
  EXPECT_EQ(SandboxOptionsFrom(options).mode, SandboxMode::kUnsafe);
}

TEST(ToolRunnerTest, EveryFieldIsReadAndBound) {
  ToolsOptions options;
  for (const Field& field : options.Fields()) {
    if (field.key() == "sandbox") {
      EXPECT_TRUE(field.Set(PlainText{"unsafe"}, "tools.sandbox").ok());
      EXPECT_FALSE(field.Set(PlainText{"off"}, "tools.sandbox").ok());
    }
    if (field.type() == "integer" || field.type() == "real") {
      EXPECT_FALSE(field.Set(PlainText{"0"}, "tools." + field.key()).ok()) << field.key();
    }
  }
  EXPECT_EQ(options.sandbox, SandboxKind::kUnsafe);
}

TEST(ToolRunnerTest, AServerHasToAnswer) {
  ToolsOptions options;
  options.url = "http://127.0.0.1:1";
  EXPECT_FALSE(StartToolRunner(options).ok());
  HttpServerOptions http;
  http.port = 0;
  const Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(
      http,
      [](const HttpMessage&, const Cancellation&) { return HttpResponse{.body = "\"pong\""}; });
  ASSERT_TRUE(server.ok());
  options.url = "http://127.0.0.1:" + std::to_string((*server)->port());
  EXPECT_TRUE(StartToolRunner(options).ok());
}

}  // namespace
}  // namespace pace
