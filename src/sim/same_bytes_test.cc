// What a simulation writes has the same bytes on every processor.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "config/settings.h"
#include "core/crc32c.h"
#include "record/run_writer.h"
#include "sim/simulation.h"

namespace pace {
namespace {

std::string Bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// Checksums of the records; tests/cli/simulation_bytes_test.py has the SHA-256 of whole files.
TEST(SameBytesTest, RecordsOfThePublishedSetupAreTheSameOnEveryProcessor) {
  const Result<Settings> settings = LoadSettings("math-4b", {"run.num_steps=40"});
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  const auto folder = std::filesystem::path(testing::TempDir()) / "same_bytes";
  std::filesystem::remove_all(folder);
  const auto writer =
      RunWriter::Create(folder.string(), *settings, {"pace", "sim"}, RecordLevel::kFull);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  SimOptions options;
  options.writer = writer->get();
  ASSERT_TRUE(RunSimulation(*settings, options).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_EQ(Crc32c(Bytes(folder / "metrics.jsonl")), 2297280711U);
  EXPECT_EQ(Crc32c(Bytes(folder / "decisions.jsonl")), 603177902U);
  EXPECT_EQ(Crc32c(Bytes(folder / "trace.jsonl")), 1590204752U);
  EXPECT_EQ(Crc32c(Bytes(folder / "events.jsonl")), 1965113756U);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pace
