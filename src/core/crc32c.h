// CRC-32C (Castagnoli) of bytes, which TensorBoard's records and checkpoints carry.
// Uses the processor's instruction where it has one.
//
//   FileSum sum;
//   sum.Add(block);  // every block of the file
//
// Thread-safety: pure functions and a value.
#ifndef PACE_CORE_CRC32C_H_
#define PACE_CORE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace pace {

// `before` is the checksum of what precedes: Crc32c(b, Crc32c(a)) == Crc32c(ab).
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

// Length and CRC-32C of a file, added up block by block.
struct FileSum {
  int64_t num_bytes = 0;
  uint32_t crc32c = 0;

  void Add(std::string_view bytes) {
    num_bytes += static_cast<int64_t>(bytes.size());
    crc32c = Crc32c(bytes, crc32c);
  }
  friend bool operator==(const FileSum&, const FileSum&) = default;
};

}  // namespace pace

#endif  // PACE_CORE_CRC32C_H_
