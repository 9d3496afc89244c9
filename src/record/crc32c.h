// CRC-32C (Castagnoli) of bytes: what TensorBoard's records and checkpoints carry.
// Uses the processor's instruction where it has one.
// Thread-safety: pure function.
#ifndef PACE_RECORD_CRC32C_H_
#define PACE_RECORD_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace pace {

// `before` is the checksum of what precedes: Crc32c(b, Crc32c(a)) == Crc32c(ab).
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

}  // namespace pace

#endif  // PACE_RECORD_CRC32C_H_
