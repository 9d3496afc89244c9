// MessageWriter and MessageReader: numbers, texts and arrays as bytes, between ranks of one
// program.
//
//   MessageWriter out;
//   out.Number(3.5);
//   out.Text("ppo");
//   MessageReader in(out.bytes());
//   const auto number = in.Number<double>();
//   const std::string name(in.Text());
//   const bool whole = in.complete();  // nothing was missing, and nothing is left
//
// The bytes are those of this machine: every rank runs the same build. Reading past the end gives
// zeros and empty values. Thread-safety: none.
#ifndef PACE_RANKS_BYTE_MESSAGE_H_
#define PACE_RANKS_BYTE_MESSAGE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pace {

class MessageWriter {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Text(std::string_view text) {
    Number(static_cast<int64_t>(text.size()));
    bytes_.append(text);
  }
  template <typename T>
  void Array(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Text({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  std::string Take() { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Number() {
    T value{};
    const std::string_view taken = Next(sizeof(T));
    if (!taken.empty()) std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }
  std::string_view Text() {
    const auto size = Number<int64_t>();
    return size <= 0 ? std::string_view() : Next(static_cast<size_t>(size));
  }
  template <typename T>
  std::vector<T> Array() {
    const std::string_view taken = Text();
    std::vector<T> values(taken.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), taken.data(), values.size() * sizeof(T));
    return values;
  }
  // Everything that was asked for was there, and nothing is left.
  bool complete() const { return !short_ && bytes_.empty(); }
  bool failed() const { return short_; }

 private:
  std::string_view Next(size_t size) {
    if (size > bytes_.size()) {
      short_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool short_ = false;
};

}  // namespace pace

#endif  // PACE_RANKS_BYTE_MESSAGE_H_
