#include "sandbox/python_installation.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(PythonInstallationTest, KeepsTheOutermostFolders) {
  const Result<PythonInstallation> python = ReadPythonInstallation(
      R"({"executable": "/opt/p/bin/python", "folders": ["/opt/p/lib/site", "/opt/p/", "/usr/lib",
          "/usr", "/opt/pp", "/opt/p"], "version": [3, 11]})",
      "/somebody");
  ASSERT_TRUE(python.ok()) << python.status().message();
  EXPECT_EQ(python->executable, "/opt/p/bin/python");
  EXPECT_EQ(python->folders, (std::vector<std::string>{"/opt/p", "/opt/pp"}));
}

std::string Refusal(const std::string& folder) {
  const Result<PythonInstallation> python = ReadPythonInstallation(
      R"({"executable": "/p", "version": [3, 11], "folders": [")" + folder + "\"]}",
      "/people/somebody");
  return python.ok() ? "" : python.status().message();
}

TEST(PythonInstallationTest, RefusesFoldersThatWouldShowTheCallersFiles) {
  EXPECT_NE(Refusal("/"), "");
  EXPECT_NE(Refusal("/people"), "");
  EXPECT_NE(Refusal("/people/somebody"), "");
  EXPECT_EQ(Refusal("/people/somebody/python"), "");
  EXPECT_EQ(Refusal("/people/some"), "");
}

TEST(PythonInstallationTest, RefusesFoldersThatProgramsHaveOfTheirOwn) {
  EXPECT_NE(Refusal("/tmp/python").find("/tmp"), std::string::npos);
  EXPECT_NE(Refusal("/proc"), "");
}

TEST(PythonInstallationTest, RefusesWhatIsNoAnswer) {
  for (const char* answer :
       {"", "Python 2.7", "{}", R"({"executable": "python", "folders": []})",
        R"({"executable": "/p", "folders": [], "version": [3, 8]})",
        R"({"executable": "/p", "folders": ["relative"], "version": [3, 11]})"}) {
    EXPECT_FALSE(ReadPythonInstallation(answer, "").ok()) << answer;
  }
}

TEST(PythonInstallationTest, ThisMachinesPythonKnowsItself) {
  const Result<PythonInstallation> python = FindPython("python3");
  ASSERT_TRUE(python.ok()) << python.status().message();
  EXPECT_TRUE(python->executable.starts_with('/'));
}

TEST(PythonInstallationTest, AMissingOneIsNamed) {
  const Result<PythonInstallation> python = FindPython("no-such-python");
  ASSERT_FALSE(python.ok());
  EXPECT_NE(python.status().message().find("no-such-python"), std::string::npos);
  EXPECT_FALSE(FindPython("/bin/true").ok());
}

}  // namespace
}  // namespace pace
