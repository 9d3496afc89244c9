#include "convert/sentencepiece_spec.h"

#include "core/concat.h"

namespace pace {
namespace {

std::string Sequence(std::string_view kind, std::string_view parts) {
  return Concat(R"({"type": "Sequence", ")", kind, R"(": [)", parts, "]}");
}

}  // namespace

void PutSentencePiece(SpaceMark mark, bool add_space, TokenizerSpec& spec) {
  const bool marked = mark == SpaceMark::kLowLine;
  std::string normalizers;
  std::string decoders;
  if (add_space) {
    normalizers +=
        Concat(R"({"type": "Prepend", "prepend": ")", marked ? kLowLineMark : " ", R"("})");
  }
  if (marked) {
    if (add_space) normalizers += ", ";
    normalizers += Concat(R"({"type": "Replace", "pattern": {"String": " "}, "content": ")",
                          kLowLineMark, R"("})");
    decoders += Concat(R"({"type": "Replace", "pattern": {"String": ")", kLowLineMark,
                       R"("}, "content": " "}, )");
  }
  decoders += R"({"type": "ByteFallback"}, {"type": "Fuse"})";
  if (add_space) decoders += R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})";
  spec.normalizer = normalizers.empty() ? "null" : Sequence("normalizers", normalizers);
  spec.decoder = Sequence("decoders", decoders);
  spec.byte_fallback = true;
  spec.fuse_unk = true;
}

}  // namespace pace
