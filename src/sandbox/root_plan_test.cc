#include "sandbox/root_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace pace {
namespace {

class FakeMachine final : public FileSystemView {
 public:
  std::set<std::string> directories = {"/usr", "/etc/alternatives", "/lib32", "/opt/python"};
  std::map<std::string, std::string> links = {{"/bin", "usr/bin"}, {"/lib", "usr/lib"}};
  std::map<std::string, std::string> real_paths;
  std::map<std::string, std::string> files = {{"/etc/ld.so.cache", "cache"},
                                              {"/etc/shadow", "secret"}};

  bool IsDirectory(const std::string& path) const override { return directories.contains(path); }
  std::string LinkTarget(const std::string& path) const override { return Find(links, path); }
  std::string RealPath(const std::string& path) const override {
    const std::string real = Find(real_paths, path);
    return real.empty() ? path : real;
  }
  std::string Content(const std::string& path) const override { return Find(files, path); }

 private:
  static std::string Find(const std::map<std::string, std::string>& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? "" : found->second;
  }
};

const RootStep* Find(const std::vector<RootStep>& steps, const std::string& target,
                     RootStepKind kind) {
  for (const RootStep& step : steps) {
    if (step.target == "/new" + target && step.kind == kind) return &step;
  }
  return nullptr;
}

TEST(RootPlanTest, ShowsTheSystemReadOnly) {
  const std::vector<RootStep> steps = PlanRoot({"/usr/bin/python3", {}}, FakeMachine());
  ASSERT_NE(Find(steps, "/usr", RootStepKind::kBind), nullptr);
  EXPECT_EQ(Find(steps, "/usr", RootStepKind::kBind)->source, "/old/usr");
  ASSERT_NE(Find(steps, "/bin", RootStepKind::kLink), nullptr);
  EXPECT_EQ(Find(steps, "/bin", RootStepKind::kLink)->source, "usr/bin");
  EXPECT_NE(Find(steps, "/lib32", RootStepKind::kBind), nullptr);
  EXPECT_EQ(Find(steps, "/lib64", RootStepKind::kBind), nullptr) << "the machine has none";
}

TEST(RootPlanTest, ShowsThePythonAtItsOwnPath) {
  FakeMachine machine;
  machine.directories.insert("/somewhere/deep/venv");
  machine.real_paths["/somewhere/deep/venv"] = "/elsewhere/venv";
  const std::vector<RootStep> steps =
      PlanRoot({"/somewhere/deep/venv/bin/python", {"/somewhere/deep/venv"}}, machine);
  const RootStep* bind = Find(steps, "/somewhere/deep/venv", RootStepKind::kBind);
  ASSERT_NE(bind, nullptr);
  EXPECT_EQ(bind->source, "/old/elsewhere/venv");
  EXPECT_NE(Find(steps, "/somewhere", RootStepKind::kDirectory), nullptr);
  EXPECT_NE(Find(steps, "/somewhere/deep", RootStepKind::kDirectory), nullptr);
}

TEST(RootPlanTest, FoldersComeBeforeWhatIsInThem) {
  FakeMachine machine;
  const std::vector<RootStep> steps =
      PlanRoot({"/opt/python/bin/python", {"/opt/python"}}, machine);
  std::set<std::string> made = {"/new"};
  for (const RootStep& step : steps) {
    const std::string above = step.target.substr(0, step.target.rfind('/'));
    EXPECT_TRUE(made.contains(above)) << step.target;
    if (step.kind == RootStepKind::kDirectory) {
      EXPECT_TRUE(made.insert(step.target).second) << step.target << " twice";
    }
  }
}

TEST(RootPlanTest, HoldsNothingElse) {
  const std::vector<RootStep> steps = PlanRoot({"/usr/bin/python3", {}}, FakeMachine());
  const std::set<std::string> shown = {"/old/usr", "/old/etc/alternatives", "/old/lib32"};
  for (const RootStep& step : steps) {
    if (step.kind == RootStepKind::kBind) {
      EXPECT_TRUE(shown.contains(step.source)) << step.source;
    }
    if (step.kind == RootStepKind::kBindDevice) {
      EXPECT_TRUE(step.source.starts_with("/old/dev/")) << step.source;
    }
    EXPECT_EQ(step.source.find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace pace
