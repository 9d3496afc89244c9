#include "core/printable.h"

namespace pace {
namespace {

constexpr size_t kMaxShown = 60;

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  if (text.size() > kMaxShown) out += "...";
  return out;
}

}  // namespace pace
