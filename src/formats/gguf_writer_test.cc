#include "formats/gguf_writer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "core/test_files.h"
#include "formats/float_encoding.h"
#include "formats/gguf.h"

namespace pace {
namespace {

std::vector<float> RandomFloats(size_t size, uint64_t seed, double scale = 1.0) {
  const CounterRandom random(seed, 1);
  std::vector<float> values;
  for (size_t i = 0; i < size; ++i) values.push_back(static_cast<float>(random.Normal(i) * scale));
  return values;
}

TEST(GgufWriterTest, OurReaderReadsItBack) {
  const std::string path = (ScratchFolder() / "model.gguf").string();
  GgufWriter writer;
  writer.PutText("general.architecture", "llama");
  writer.PutU32("count", 7);
  writer.PutF32("epsilon", 1e-5f);
  writer.PutBool("flag", true);
  const std::vector<std::string> texts = {"a", "", "ccc"};
  writer.PutTexts("texts", texts);
  const std::vector<int32_t> integers = {1, -3};
  writer.PutI32s("integers", integers);
  const std::vector<float> reals = {0.5f};
  writer.PutF32s("reals", reals);
  writer.AddTensor("norm", kGgmlF32, {3});
  writer.AddTensor("half", kGgmlF16, {2, 5});
  writer.AddTensor("brain", kGgmlBF16, {5, 1});
  writer.AddTensor("quantised", kGgmlQ8_0, {2, 64});
  std::vector<std::vector<float>> values;
  for (const size_t size : {3u, 10u, 5u, 128u}) values.push_back(RandomFloats(size, size));
  ASSERT_TRUE(writer.Write(path, [&](size_t i) { return values[i]; }).ok());

  const Result<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->Text("general.architecture"), "llama");
  EXPECT_EQ(*file->Integer("count"), 7);
  EXPECT_EQ(*file->Real("epsilon"), static_cast<double>(1e-5f));
  EXPECT_TRUE(std::get<bool>(file->metadata().at("flag")));
  EXPECT_EQ(std::get<GgufArray>(file->metadata().at("texts")).texts, texts);
  EXPECT_EQ(std::get<GgufArray>(file->metadata().at("integers")).integers,
            (std::vector<int64_t>{1, -3}));
  EXPECT_EQ(std::get<GgufArray>(file->metadata().at("reals")).reals, std::vector<double>{0.5});
  ASSERT_EQ(file->tensors().size(), 4u);
  EXPECT_EQ(file->Find("half")->shape, (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(*Dequantize(*file->Find("norm")), values[0]);
  const std::vector<float> halves = *Dequantize(*file->Find("half"));
  for (size_t i = 0; i < halves.size(); ++i) {
    EXPECT_EQ(halves[i], F16ToFloat(FloatToF16(values[1][i])));
  }
  const std::vector<float> brains = *Dequantize(*file->Find("brain"));
  for (size_t i = 0; i < brains.size(); ++i) {
    EXPECT_EQ(brains[i], BF16ToFloat(FloatToBF16(values[2][i])));
  }
  const std::vector<float> quantised = *Dequantize(*file->Find("quantised"));
  for (size_t i = 0; i < quantised.size(); ++i) {
    EXPECT_NEAR(quantised[i], values[3][i], 4.0 / 127);
  }
}

TEST(GgufWriterTest, AFailureLeavesNothingBehind) {
  const auto folder = ScratchFolder();
  GgufWriter writer;
  writer.AddTensor("norm", kGgmlF32, {3});
  const Status status =
      writer.Write((folder / "model.gguf").string(),
                   [](size_t) -> Result<std::vector<float>> { return DataLoss("gone"); });
  EXPECT_EQ(status.message(), "gone");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

// Block by block, with the definition written out in doubles where it is exact.
TEST(FloatEncodingTest, Q8BlocksHoldTheScaleAndTheRoundedValues) {
  for (const double scale : {1e-6, 1.0, 1e4, 0.0}) {
    const std::vector<float> values = RandomFloats(32, 3, scale);
    const std::vector<std::byte> bytes = EncodeQ8_0(values);
    ASSERT_EQ(bytes.size(), 34u);
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::fabs(value));
    uint16_t half = 0;
    std::memcpy(&half, bytes.data(), 2);
    EXPECT_EQ(half, FloatToF16(largest / 127.0f));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto found = static_cast<int>(static_cast<int8_t>(bytes[2 + i]));
      const float exact = largest == 0 ? 0 : values[i] / (largest / 127.0f);
      EXPECT_NEAR(found, exact, 0.501) << scale;
    }
  }
}

TEST(FloatEncodingTest, Q8RoundsHalvesAwayFromZero) {
  std::vector<float> values(32, 0.0f);
  values[0] = 127.0f;  // the scale is 1
  values[1] = 2.5f;
  values[2] = -2.5f;
  values[3] = -127.0f;
  const std::vector<std::byte> bytes = EncodeQ8_0(values);
  EXPECT_EQ(static_cast<int8_t>(bytes[3]), 3);
  EXPECT_EQ(static_cast<int8_t>(bytes[4]), -3);
  EXPECT_EQ(static_cast<int8_t>(bytes[5]), -127);
}

}  // namespace
}  // namespace pace
