#include "formats/gguf.h"

#include <limits>

#include "formats/float_encoding.h"
#include "formats/gguf_builder.h"

namespace pace {
namespace {

std::string ParseError(const std::string& file) {
  const Result<GgufContents> contents = ParseGguf(Bytes(file));
  return contents.ok() ? "" : contents.status().message();
}

TEST(GgufTest, EveryTypeOfMetadataReadsBack) {
  GgufBuilder builder;
  builder.Value("u8", GgufType::kU8, Raw(uint8_t{255}))
      .Value("i8", GgufType::kI8, Raw(int8_t{-128}))
      .Value("u16", GgufType::kU16, Raw(uint16_t{65535}))
      .Value("i16", GgufType::kI16, Raw(int16_t{-32768}))
      .Value("u32", GgufType::kU32, Raw(std::numeric_limits<uint32_t>::max()))
      .Value("i32", GgufType::kI32, Raw(std::numeric_limits<int32_t>::min()))
      .Value("f32", GgufType::kF32, Raw(0.1f))
      .Value("bool", GgufType::kBool, Raw(uint8_t{1}))
      .Text("text", std::string_view("a\0b", 3))
      .Value("u64", GgufType::kU64, Raw(std::numeric_limits<uint64_t>::max()))
      .Value("i64", GgufType::kI64, Raw(std::numeric_limits<int64_t>::min()))
      .Value("f64", GgufType::kF64, Raw(0.1));
  const std::string file = builder.Build();
  const Result<GgufContents> contents = ParseGguf(Bytes(file));
  ASSERT_TRUE(contents.ok()) << contents.status().message();
  const GgufMetadata expected = {
      {"u8", int64_t{255}},
      {"i8", int64_t{-128}},
      {"u16", int64_t{65535}},
      {"i16", int64_t{-32768}},
      {"u32", int64_t{4294967295}},
      {"i32", int64_t{-2147483648}},
      {"f32", double{0.1f}},
      {"bool", true},
      {"text", std::string("a\0b", 3)},
      {"u64", std::numeric_limits<uint64_t>::max()},
      {"i64", std::numeric_limits<int64_t>::min()},
      {"f64", 0.1},
  };
  EXPECT_TRUE(contents->metadata == expected);
  EXPECT_EQ(contents->version, 3u);
  EXPECT_EQ(contents->alignment, 32);
}

TEST(GgufTest, ArraysKeepTheirItemsAndMayNest) {
  GgufBuilder builder;
  builder.version = 2;
  builder
      .Value("texts", GgufType::kArray,
             GgufArrayOf(GgufType::kText, 2, GgufText("x") + GgufText("")))
      .Value("integers", GgufType::kArray,
             GgufArrayOf(GgufType::kI16, 2, Raw(int16_t{-1}) + Raw(int16_t{7})))
      .Value("large", GgufType::kArray, GgufArrayOf(GgufType::kU64, 1, Raw(uint64_t{1} << 63)))
      .Value("flags", GgufType::kArray, GgufArrayOf(GgufType::kBool, 2, Raw(uint16_t{0x0100})))
      .Value("nested", GgufType::kArray,
             GgufArrayOf(
                 GgufType::kArray, 2,
                 GgufArrayOf(GgufType::kF32, 1, Raw(1.5f)) + GgufArrayOf(GgufType::kF32, 0, "")));
  const std::string file = builder.Build();
  const Result<GgufContents> contents = ParseGguf(Bytes(file));
  ASSERT_TRUE(contents.ok()) << contents.status().message();
  const auto array = [&](const char* key) {
    return std::get<GgufArray>(contents->metadata.find(key)->second);
  };
  EXPECT_EQ(array("texts").texts, (std::vector<std::string>{"x", ""}));
  EXPECT_EQ(array("integers").integers, (std::vector<int64_t>{-1, 7}));
  EXPECT_EQ(array("large").unsigneds, (std::vector<uint64_t>{uint64_t{1} << 63}));
  EXPECT_EQ(array("flags").integers, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(array("nested").arrays.at(0).reals, (std::vector<double>{1.5}));
  EXPECT_EQ(array("nested").size(), 2u);
}

TEST(GgufTest, ArraysThatNestTooDeeplyAreRefused) {
  std::string array = GgufArrayOf(GgufType::kU8, 0, "");
  for (int depth = 1; depth < 8; ++depth) array = GgufArrayOf(GgufType::kArray, 1, array);
  EXPECT_EQ(ParseError(GgufBuilder().Value("k", GgufType::kArray, array).Build()), "");
  array = GgufArrayOf(GgufType::kArray, 1, array);
  EXPECT_EQ(ParseError(GgufBuilder().Value("k", GgufType::kArray, array).Build()),
            "metadata k: arrays must nest at most 8 deep");
}

TEST(GgufTest, TensorsAreAlignedAndTheirShapeIsSlowestFirst) {
  GgufBuilder builder;
  builder.alignment = 64;
  builder.Value("general.alignment", GgufType::kU32, Raw(uint32_t{64}))
      .Tensor("a", {2, 1}, kGgmlF32, Raw(1.0f) + Raw(2.0f))
      .Tensor("b", {1, 3}, kGgmlF16, Raw(FloatToF16(3)) + Raw(FloatToF16(4)) + Raw(FloatToF16(5)))
      .Tensor("empty", {4, 0}, kGgmlF32, "");
  const std::string file = builder.Build();
  const Result<GgufContents> contents = ParseGguf(Bytes(file));
  ASSERT_TRUE(contents.ok()) << contents.status().message();
  ASSERT_EQ(contents->tensors.size(), 3u);
  EXPECT_EQ(contents->tensors[0].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*Dequantize(contents->tensors[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(contents->tensors[1].shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(*Dequantize(contents->tensors[1]), (std::vector<float>{3, 4, 5}));
  EXPECT_TRUE(Dequantize(contents->tensors[2])->empty());
}

// One block, 16 bytes whose low halves count up and whose high halves count down.
std::string Nibbles() {
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes += static_cast<char>(i | ((15 - i) << 4));
  return bytes;
}

std::vector<float> DequantizeOne(uint32_t type, const std::string& block, uint64_t elements) {
  const std::string file = GgufBuilder().Tensor("t", {elements}, type, block).Build();
  const Result<GgufContents> contents = ParseGguf(Bytes(file));
  EXPECT_TRUE(contents.ok()) << contents.status().message();
  return *Dequantize(contents->tensors.at(0));
}

TEST(GgufTest, BlocksBecomeTheValuesTheyStandFor) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes += static_cast<char>(i * 8 - 128);
  const auto q8_0 = DequantizeOne(kGgmlQ8_0, Raw(FloatToF16(0.5f)) + bytes, 32);
  const auto q4_0 = DequantizeOne(kGgmlQ4_0, Raw(FloatToF16(-2)) + Nibbles(), 32);
  const auto q4_1 =
      DequantizeOne(kGgmlQ4_1, Raw(FloatToF16(0.25f)) + Raw(FloatToF16(-1)) + Nibbles(), 32);
  for (int i = 0; i < 32; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(q8_0[at], 0.5f * static_cast<float>(i * 8 - 128));
    const auto nibble = static_cast<float>(i < 16 ? i : 31 - i);
    EXPECT_EQ(q4_0[at], -2.0f * (nibble - 8));
    EXPECT_EQ(q4_1[at], 0.25f * nibble - 1);
  }
  EXPECT_EQ(DequantizeOne(kGgmlBF16, Raw(FloatToBF16(-1.5f)) + Raw(FloatToBF16(2)), 2),
            (std::vector<float>{-1.5f, 2}));
}

TEST(GgufTest, OtherTypesAreListedButRefusedByName) {
  const std::string file = GgufBuilder().Tensor("t", {256}, 14, std::string(210, '\0')).Build();
  const Result<GgufContents> contents = ParseGguf(Bytes(file));
  ASSERT_TRUE(contents.ok());
  const auto values = Dequantize(contents->tensors[0]);
  ASSERT_FALSE(values.ok());
  EXPECT_NE(values.status().message().find("type Q6_K"), std::string::npos);
}

TEST(GgufTest, EveryCutOfAFileIsRefused) {
  GgufBuilder builder;
  builder.Text("general.architecture", "llama")
      .Value("list", GgufType::kArray, GgufArrayOf(GgufType::kText, 1, GgufText("item")))
      .Tensor("t", {32, 2}, kGgmlQ8_0, std::string(68, 'x'));
  const std::string file = builder.Build();
  EXPECT_EQ(ParseError(file), "");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(ParseError(file.substr(0, size)), "") << size;
  }
}

TEST(GgufTest, HugeCountsAreRefusedWithoutTakingMemory) {
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  const std::string head = "GGUF" + Raw(uint32_t{3});
  EXPECT_NE(ParseError(head + Raw(kHuge) + Raw(uint64_t{0})), "");
  EXPECT_NE(ParseError(head + Raw(uint64_t{0}) + Raw(kHuge)), "");
  EXPECT_NE(ParseError(head + Raw(uint64_t{0}) + Raw(uint64_t{1}) + Raw(kHuge) + "key and more"),
            "");
  for (const GgufType type : {GgufType::kU8, GgufType::kText, GgufType::kArray}) {
    const std::string array = GgufArrayOf(type, kHuge / 8, "");
    EXPECT_NE(ParseError(GgufBuilder().Value("k", GgufType::kArray, array).Build()), "");
  }
}

TEST(GgufTest, BrokenRulesAreNamed) {
  constexpr uint64_t kHalf = uint64_t{1} << 62;
  const std::string one = Raw(1.0f);
  const auto tensor = [&](const std::vector<uint64_t>& dimensions, uint32_t type) {
    return ParseError(GgufBuilder().Tensor("t", dimensions, type, one).Build());
  };
  EXPECT_NE(tensor({1, 1, 1, 1, 1}, kGgmlF32).find("number of dimensions = 5"), std::string::npos);
  EXPECT_NE(tensor({kHalf, 4}, kGgmlF32).find("63 bits"), std::string::npos);
  EXPECT_NE(tensor({kHalf}, kGgmlF32).find("63 bits"), std::string::npos);
  EXPECT_NE(tensor({kHalf * 2}, kGgmlF32).find("must be >= 0"), std::string::npos);
  EXPECT_NE(tensor({33}, kGgmlQ8_0).find("multiples of 32"), std::string::npos);
  EXPECT_NE(tensor({1}, 4).find("no such type"), std::string::npos);
  EXPECT_NE(tensor({2}, kGgmlF32).find("truncated"), std::string::npos);

  const auto twice = [&](GgufBuilder builder) {
    return ParseError(
        builder.Tensor("t", {1}, kGgmlF32, one).Tensor("t", {1}, kGgmlF32, one).Build());
  };
  EXPECT_EQ(twice(GgufBuilder()), "tensor t: must stand once");
  EXPECT_EQ(ParseError(GgufBuilder().Text("k", "").Text("k", "").Build()),
            "metadata k: must stand once");
  EXPECT_NE(ParseError(GgufBuilder().Value("k", static_cast<GgufType>(13), "1234").Build()), "");
  EXPECT_NE(ParseError(GgufBuilder().Value("k", GgufType::kBool, "\x02").Build()), "");
  for (const uint32_t alignment : {0u, 24u}) {
    GgufBuilder builder;
    builder.Value("general.alignment", GgufType::kU32, Raw(alignment));
    EXPECT_NE(ParseError(builder.Build()).find("power of two"), std::string::npos);
  }

  GgufBuilder version;
  for (const uint32_t number : {0u, 1u, 4u, 0x03000000u}) {
    version.version = number;
    EXPECT_NE(ParseError(version.Build()).find("must be 2 or 3"), std::string::npos);
  }
  GgufBuilder gap;  // the data is laid out to 64, the header says 32
  gap.alignment = 64;
  gap.Tensor("a", {1}, kGgmlF32, one).Tensor("b", {1}, kGgmlF32, one);
  EXPECT_NE(ParseError(gap.Build()).find("tensor b: offset = 64: must be 32"), std::string::npos);
}

TEST(GgufTest, MetadataIsAskedForByTypeAndErrorsNameFileAndKey) {
  const std::string path = WriteFile(ScratchFolder() / "file.gguf",
                                     GgufBuilder()
                                         .Text("text", "x")
                                         .Value("u64", GgufType::kU64, Raw(uint64_t{7}))
                                         .Value("large", GgufType::kU64, Raw(~uint64_t{0}))
                                         .Value("real", GgufType::kF32, Raw(0.5f))
                                         .Build());
  const Result<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->Text("text"), "x");
  EXPECT_EQ(*file->Integer("u64"), 7);
  EXPECT_EQ(*file->Real("real"), 0.5);
  EXPECT_EQ(file->Integer("none").status().message(), path + ": metadata none: is missing");
  EXPECT_FALSE(file->Integer("large").ok());
  EXPECT_FALSE(file->Real("u64").ok());
  EXPECT_FALSE(file->Text("real").ok());
}

}  // namespace
}  // namespace pace
