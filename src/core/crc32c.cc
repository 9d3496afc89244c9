#include "core/crc32c.h"

#include <array>
#include <cstring>

#if defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace pace {
namespace {

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = MakeCrcTable();

// By the processor's own instruction: eight bytes at a time for as long as there are
// eight; `at` moves past them.
#if defined(__x86_64__)
bool HasInstruction() {
  return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) uint32_t CrcOfWords(std::string_view bytes, uint32_t crc,
                                                      size_t& at) {
  uint64_t sum = crc;
  for (; bytes.size() - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    sum = __builtin_ia32_crc32di(sum, word);
  }
  return static_cast<uint32_t>(sum);
}
#elif defined(__aarch64__)
bool HasInstruction() {
  constexpr unsigned long kCrcBit = 1UL << 7;  // HWCAP_CRC32
  static const bool has = (getauxval(AT_HWCAP) & kCrcBit) != 0;
  return has;
}

__attribute__((target("arch=armv8-a+crc"))) uint32_t CrcOfWords(std::string_view bytes,
                                                                uint32_t crc, size_t& at) {
  for (; bytes.size() - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    crc = __crc32cd(crc, word);
  }
  return crc;
}
#else
bool HasInstruction() {
  return false;
}

uint32_t CrcOfWords(std::string_view, uint32_t crc, size_t&) {
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  size_t at = 0;
  if (HasInstruction()) crc = CrcOfWords(bytes, crc, at);
  for (; at < bytes.size(); ++at) {
    crc = kCrcTable[(crc ^ static_cast<uint8_t>(bytes[at])) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

}  // namespace pace
