#include "record/tensorboard_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "core/crc32c.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

class TensorBoardWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string Written(int64_t start) const {
    std::ifstream in(folder_ / Concat("events.out.tfevents.", start, ".pace"), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  fs::path folder_;
};

// The bodies of the records, their checksums verified.
std::vector<std::string> Records(const std::string& file) {
  const auto masked = [](uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8U; };
  std::vector<std::string> records;
  size_t at = 0;
  while (at < file.size()) {
    uint64_t size = 0;
    uint32_t length_crc = 0;
    uint32_t body_crc = 0;
    std::memcpy(&size, file.data() + at, 8);
    std::memcpy(&length_crc, file.data() + at + 8, 4);
    EXPECT_EQ(length_crc, masked(Crc32c(file.substr(at, 8))));
    records.push_back(file.substr(at + 12, size));
    std::memcpy(&body_crc, file.data() + at + 12 + size, 4);
    EXPECT_EQ(body_crc, masked(Crc32c(records.back())));
    at += size + 16;
  }
  EXPECT_EQ(at, file.size());
  return records;
}

TEST(Crc32cTest, KnowsThePublishedValues) {
  EXPECT_EQ(Crc32c(""), 0U);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

// Bit by bit, as the polynomial says.
uint32_t SlowCrc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
  }
  return ~crc;
}

TEST(Crc32cTest, GoesOnFromWhatStandsInFront) {
  std::string bytes;
  for (size_t i = 0; i < 70; ++i) {
    EXPECT_EQ(Crc32c(bytes), SlowCrc32c(bytes)) << i;
    const std::string_view view = bytes;
    for (size_t cut = 0; cut <= i; cut += 3) {
      EXPECT_EQ(Crc32c(view.substr(cut), Crc32c(view.substr(0, cut))), SlowCrc32c(bytes)) << i;
    }
    bytes += static_cast<char>(i * 37 + 11);
  }
}

TEST_F(TensorBoardWriterTest, WritesTheEncodingByteForByte) {
  Result<TensorBoardWriter> board = TensorBoardWriter::Create(folder_.string(), 0);
  ASSERT_TRUE(board.ok());
  const std::vector<Scalar> scalars = {{"a/b", 1.5}};
  ASSERT_TRUE(board->Add(300, Seconds(2), scalars).ok());
  const std::vector<std::string> records = Records(Written(0));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0], std::string("\x09\0\0\0\0\0\0\0\0\x1a\x0d"
                                    "brain.Event:2",
                                    24));
  EXPECT_EQ(records[1], std::string("\x09\0\0\0\0\0\0\0\x40\x10\xac\x02\x2a\x0c\x0a\x0a\x0a\x03"
                                    "a/b\x15\0\0\xc0\x3f",
                                    26));
}

TEST_F(TensorBoardWriterTest, EveryEventIsInTheFileBeforeTheEnd) {
  Result<TensorBoardWriter> board = TensorBoardWriter::Create(folder_.string(), 7);
  ASSERT_TRUE(board.ok());
  const std::vector<Scalar> scalars = {{"x", 1}};
  for (int64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(board->Add(step, Seconds(0.5), scalars).ok());
    EXPECT_EQ(Records(Written(7)).size(), static_cast<size_t>(step) + 2);
  }
  EXPECT_TRUE(board->Close().ok());
  EXPECT_TRUE(board->Close().ok());
}

TEST_F(TensorBoardWriterTest, LeavesOutWhatCannotBeDrawn) {
  Result<TensorBoardWriter> board = TensorBoardWriter::Create(folder_.string(), 0);
  ASSERT_TRUE(board.ok());
  const std::vector<Scalar> scalars = {{"nan", std::numeric_limits<double>::quiet_NaN()},
                                       {"inf", std::numeric_limits<double>::infinity()}};
  ASSERT_TRUE(board->Add(0, Seconds(0), scalars).ok());
  const std::string last = Records(Written(0)).back();
  EXPECT_EQ(last.find("nan"), std::string::npos);
  EXPECT_EQ(last.find("inf"), std::string::npos);
}

TEST_F(TensorBoardWriterTest, AFolderThatIsNotThereIsAnError) {
  const Result<TensorBoardWriter> board = TensorBoardWriter::Create((folder_ / "none").string(), 0);
  ASSERT_FALSE(board.ok());
  EXPECT_NE(board.status().message().find("cannot be created"), std::string::npos);
}

}  // namespace
}  // namespace pace
