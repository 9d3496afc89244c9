#include "formats/safetensors.h"

#include <limits>
#include <vector>

#include "core/concat.h"
#include "core/test_files.h"

namespace pace {
namespace {

// A file with this header and 16 bytes of data.
std::string File(const std::string& header) {
  return Raw(uint64_t{header.size()}) + header + "0123456789abcdef";
}

// Four floats that take all the data.
const std::string kWhole = R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})";

std::string Tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return Concat(R"({"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets,
                "}");
}

// What the package (0.8.0) accepts, tried with the package itself.
TEST(SafetensorsTest, AcceptsWhatThePackageAccepts) {
  const std::vector<std::string> headers = {
      R"({"a":)" + kWhole + "}   ",
      "\n {\"a\":" + kWhole + "}\n\n",
      R"({"a":)" + kWhole + R"(,"a":)" + kWhole + "}",
      R"({"a":{"x":1,"x":[{}],"dtype":"F32","shape":[4],"data_offsets":[0,16],"y":null}})",
      R"({"__metadata__":null,"a":)" + kWhole + "}",
      R"({"__metadata__":{},"a":)" + kWhole + "}",
      R"({"__metadata__":{"k":"v","k":"w"},"a":)" + kWhole + "}",
      R"({"a":["F32",[4],[0,16]]})",
      R"({"a":{"dtype":{"F32":null},"shape":[4],"data_offsets":[0,16]}})",
      R"({"a":{"d\u0074ype":"F32","shape":[4],"data_offsets":[0,16]}})",
      R"({"":)" + kWhole + "}",
      R"({"\u0000":)" + kWhole + "}",
      R"({"a":)" + Tensor("F4", "[32]", "[0,16]") + "}",
      R"({"a":)" + Tensor("F6_E2M3", "[4]", "[0,3]") + R"(,"b":)" + Tensor("U8", "[13]", "[3,16]") +
          "}",
      R"({"a":)" + Tensor("C64", "[2]", "[0,16]") + "}",
      R"({"a":)" + Tensor("F8_E8M0", "[16]", "[0,16]") + "}",
      // Empty tensors, at one offset, at the end, beside dimensions whose
      // product would not fit.
      R"({"a":)" + Tensor("F32", "[0]", "[0,0]") + R"(,"b":)" + Tensor("F32", "[0]", "[0,0]") +
          R"(,"c":)" + kWhole + "}",
      R"({"c":)" + kWhole + R"(,"b":)" + Tensor("F32", "[0]", "[16,16]") + "}",
      R"({"c":)" + kWhole + R"(,"b":)" + Tensor("F32", "[0,4294967296,4294967296]", "[0,0]") + "}",
      // Data that is not aligned to its elements.
      R"({"a":)" + Tensor("U8", "[1]", "[0,1]") + R"(,"b":)" + Tensor("F32", "[3]", "[1,13]") +
          R"(,"c":)" + Tensor("U8", "[3]", "[13,16]") + "}",
  };
  for (const std::string& header : headers) {
    const std::string file = File(header);
    const auto contents = ParseSafetensors(Bytes(file));
    EXPECT_TRUE(contents.ok()) << header << "\n" << contents.status().message();
  }
}

TEST(SafetensorsTest, RefusesWhatThePackageRefuses) {
  const std::vector<std::string> headers = {
      "",
      "null",
      "[]",
      "{}",  // 16 bytes that no tensor covers
      "\xEF\xBB\xBF{\"a\":" + kWhole + "}",
      R"({"a":)" + kWhole + ",}",
      R"({"a":)" + kWhole + "}x",
      R"({"a":)" + kWhole + "}" + std::string(1, '\0'),
      R"({"a":null})",
      R"({"a":1,"b":)" + kWhole + "}",
      R"({"a":["F32",[4],[0,16],1]})",
      R"({"a":["F32",[4]]})",
      R"({"a":)" + kWhole + R"(,"a":)" + Tensor("F32", "[2]", "[0,8]") + "}",
      R"({"a":{"dtype":"F32","dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
      R"({"__metadata__":{"a":"b"},"__metadata__":{"a":"b"},"a":)" + kWhole + "}",
      R"({"__metadata__":{"a":1},"a":)" + kWhole + "}",
      R"({"__metadata__":{"a":null},"a":)" + kWhole + "}",
      R"({"__metadata__":[],"a":)" + kWhole + "}",
      R"({"__metadata__":)" + kWhole + "}",
      R"({"a":{"dtype":17,"shape":[4],"data_offsets":[0,16]}})",
      R"({"a":{"dtype":{},"shape":[4],"data_offsets":[0,16]}})",
      R"({"a":{"dtype":{"F32":1},"shape":[4],"data_offsets":[0,16]}})",
      R"({"a":{"dtype":{"F32":null,"F32":null},"shape":[4],"data_offsets":[0,16]}})",
      R"({"a":)" + Tensor("f32", "[4]", "[0,16]") + "}",
      R"({"a":)" + Tensor("C128", "[1]", "[0,16]") + "}",
      R"({"a":)" + Tensor("F32", "[4.0]", "[0,16]") + "}",
      R"({"a":)" + Tensor("F32", "[4e0]", "[0,16]") + "}",
      R"({"a":)" + Tensor("F32", "[-4]", "[0,16]") + "}",
      R"({"a":)" + Tensor("F32", "null", "[0,16]") + "}",
      R"({"a":)" + Tensor("F32", "[4294967296,4294967296]", "[0,16]") + "}",
      R"({"a":)" + Tensor("F32", "[4294967296,4294967296,0]", "[0,0]") + R"(,"b":)" + kWhole + "}",
      R"({"a":)" + Tensor("F32", "[0,18446744073709551616]", "[0,0]") + R"(,"b":)" + kWhole + "}",
      R"({"a":)" + Tensor("F32", "[4]", "[0,16,16]") + "}",
      R"({"a":)" + Tensor("F32", "[4]", "[0]") + "}",
      R"({"a":)" + Tensor("F32", "[4]", "[16,0]") + "}",
      R"({"a":)" + Tensor("F32", "[4]", "[0,18446744073709551615]") + "}",
      R"({"a":)" + Tensor("F32", "[4]", "[0,9223372036854775807]") + "}",
      R"({"a":)" + Tensor("F32", "[3]", "[0,12]") + "}",
      R"({"a":)" + Tensor("F32", "[3]", "[4,16]") + "}",
      R"({"a":)" + Tensor("F32", "[5]", "[0,20]") + "}",
      R"({"a":)" + Tensor("F4", "[3]", "[0,2]") + R"(,"b":)" + Tensor("U8", "[14]", "[2,16]") + "}",
      R"({"a":)" + kWhole + R"(,"b":)" + kWhole + "}",
      R"({"a":)" + kWhole + R"(,"b":)" + Tensor("F32", "[0]", "[17,17]") + "}",
      R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16],"x":1e400}})",
      R"({"\ud800":)" + kWhole + "}",
      "{\"a\tb\":" + kWhole + "}",
      "{\"a\xFF\":" + kWhole + "}",
  };
  for (const std::string& header : headers) {
    const std::string file = File(header);
    const auto contents = ParseSafetensors(Bytes(file));
    EXPECT_FALSE(contents.ok()) << header;
    EXPECT_EQ(contents.status().message().find('\n'), std::string::npos);
  }
}

TEST(SafetensorsTest, LengthsThatDoNotFitTheFileAreRefused) {
  const std::string whole = File(R"({"a":)" + kWhole + "}");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseSafetensors(Bytes(whole).first(size)).ok()) << size;
  }
  EXPECT_TRUE(ParseSafetensors(Bytes(whole)).ok());
  const std::string longer = whole + " ";
  EXPECT_FALSE(ParseSafetensors(Bytes(longer)).ok());
  for (const uint64_t length : {uint64_t{100'000'001}, std::numeric_limits<uint64_t>::max(),
                                std::numeric_limits<uint64_t>::max() - 7}) {
    const std::string file = Raw(length) + "{}";
    EXPECT_FALSE(ParseSafetensors(Bytes(file)).ok()) << length;
  }
}

TEST(SafetensorsTest, TensorsAreFoundByNameWhereTheOffsetsSay) {
  const std::string path =
      WriteFile(ScratchFolder() / "file.safetensors",
                File(R"({"__metadata__":{"format":"pt"},"z":)" + Tensor("I32", "[2,1]", "[4,12]") +
                     R"(,"scalar":)" + Tensor("I32", "[]", "[12,16]") + R"(,"a":)" +
                     Tensor("I16", "[2]", "[0,4]") + "}"));
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->metadata(), (SafetensorsMetadata{{"format", "pt"}}));
  ASSERT_NE(file->Find("z"), nullptr);
  EXPECT_EQ(file->Find("z")->dtype, Dtype::kI32);
  EXPECT_EQ(file->Find("z")->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::memcmp(file->Find("z")->bytes.data(), "456789ab", 8), 0);
  EXPECT_EQ(file->Find("scalar")->bytes.size(), 4u);
  EXPECT_TRUE(file->Find("scalar")->shape.empty());
  EXPECT_EQ(std::memcmp(file->Find("a")->bytes.data(), "0123", 4), 0);
  EXPECT_EQ(file->Find("b"), nullptr);
  EXPECT_EQ(file->tensors().size(), 3u);
}

TEST(SafetensorsTest, AnErrorNamesFileTensorFieldAndRule) {
  const std::string path =
      WriteFile(ScratchFolder() / "bad.safetensors",
                File(R"({"layer.weight":)" + Tensor("F33", "[4]", "[0,16]") + "}"));
  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().message(),
            path +
                ": header: layer.weight.dtype = F33: must be a dtype of safetensors "
                "(F32, F16, BF16, I64, ...)");
  const std::string gap = File(R"({"w":)" + Tensor("U8", "[15]", "[1,16]") + "}");
  EXPECT_EQ(ParseSafetensors(Bytes(gap)).status().message(),
            "tensor w: data_offsets = [1, 16]: must begin at 0 (tensors follow each other "
            "without gap or overlap)");
}

}  // namespace
}  // namespace pace
