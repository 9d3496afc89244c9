// ByteReader walks little-endian bytes and never past their end.
//
// The first read that does not fit sets failed() and every later one does
// nothing: values stay as they were.
// Thread-safety: none.
#ifndef PACE_FORMATS_BYTE_READER_H_
#define PACE_FORMATS_BYTE_READER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace pace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

class ByteReader {
 public:
  // Borrows the bytes.
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
    requires(std::is_trivially_copyable_v<T>)
  bool Read(T& out) {
    if (!Fits(sizeof(T))) return false;
    std::memcpy(&out, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

  bool ReadText(uint64_t length, std::string& out) {
    if (!Fits(length)) return false;
    out.assign(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return true;
  }

  uint64_t at() const { return at_; }
  uint64_t num_left() const { return bytes_.size() - at_; }
  bool failed() const { return failed_; }

 private:
  bool Fits(uint64_t length) {
    failed_ = failed_ || length > num_left();
    return !failed_;
  }

  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  bool failed_ = false;
};

}  // namespace pace

#endif  // PACE_FORMATS_BYTE_READER_H_
