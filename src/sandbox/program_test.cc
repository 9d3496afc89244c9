#include "sandbox/program.h"

#include <gtest/gtest.h>

#include "sandbox/sandbox.h"
#include "sandbox/sandbox_options.h"

namespace pace {
namespace {

TEST(ProgramPathTest, StaysInTheFolder) {
  for (const char* path : {"a", "a/b.py", "..a", "a..b/c", ".hidden"}) {
    EXPECT_TRUE(CheckProgramPath(path).ok()) << path;
  }
  for (const std::string& path :
       {std::string(), std::string("/a"), std::string(".."), std::string("a/../b"),
        std::string("a/"), std::string("./a"), std::string("a//b"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(CheckProgramPath(path).ok()) << path;
  }
}

TEST(SandboxOptionsTest, DefaultsAreValid) {
  EXPECT_TRUE(SandboxOptions().Validate().ok());
}

TEST(SandboxOptionsTest, EveryLimitHasItsRule) {
  const auto broken = [](auto change) {
    SandboxOptions options;
    change(options);
    return options.Validate().message();
  };
  EXPECT_NE(broken([](auto& o) { o.max_programs = 0; }).find("max_programs = 0"),
            std::string::npos);
  EXPECT_NE(broken([](auto& o) { o.timeout = Seconds(-1); }).find("timeout"), std::string::npos);
  EXPECT_NE(broken([](auto& o) { o.memory_bytes = 1; }).find("memory_bytes"), std::string::npos);
  EXPECT_NE(broken([](auto& o) { o.tmp_bytes = 0; }).find("tmp_bytes"), std::string::npos);
  EXPECT_NE(broken([](auto& o) { o.max_processes = 0; }).find("max_processes"), std::string::npos);
  EXPECT_NE(broken([](auto& o) { o.max_output_bytes = 0; }).find("max_output"), std::string::npos);
  EXPECT_NE(broken([](auto& o) { o.python = ""; }).find("python"), std::string::npos);
  EXPECT_NE(broken([](auto& o) { o.warm_modules = {"os; evil()"}; }).find("warm_modules"),
            std::string::npos);
}

TEST(SandboxModulesTest, AreFoundByName) {
  EXPECT_TRUE(NamesModule("from sympy import x", {"numpy", "sympy"}));
  EXPECT_FALSE(NamesModule("print(1)", {"numpy", "sympy"}));
  EXPECT_FALSE(NamesModule("import numpy", {}));
}

}  // namespace
}  // namespace pace
