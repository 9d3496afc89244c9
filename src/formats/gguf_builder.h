// Builds GGUF files for tests, well-formed unless told otherwise.
#ifndef PACE_FORMATS_GGUF_BUILDER_H_
#define PACE_FORMATS_GGUF_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/test_files.h"
#include "formats/gguf.h"

namespace pace {

inline std::string GgufText(std::string_view text) {
  return Raw(uint64_t{text.size()}) + std::string(text);
}

inline std::string GgufArrayOf(GgufType type, uint64_t count, const std::string& items) {
  return Raw(type) + Raw(count) + items;
}

class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;

  GgufBuilder& Value(std::string_view key, GgufType type, const std::string& raw) {
    metadata_ += GgufText(key) + Raw(type) + raw;
    ++num_pairs_;
    return *this;
  }
  GgufBuilder& Text(std::string_view key, std::string_view text) {
    return Value(key, GgufType::kText, GgufText(text));
  }
  // Dimensions as in the file: fastest first.
  GgufBuilder& Tensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type,
                      const std::string& raw) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\0');
    tensors_ += GgufText(name) + Raw(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t dimension : dimensions) tensors_ += Raw(dimension);
    tensors_ += Raw(type) + Raw(uint64_t{data_.size()});
    data_ += raw;
    ++num_tensors_;
    return *this;
  }
  std::string Build() const {
    std::string file =
        "GGUF" + Raw(version) + Raw(num_tensors_) + Raw(num_pairs_) + metadata_ + tensors_;
    file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
    return file + data_;
  }

 private:
  uint64_t num_pairs_ = 0;
  uint64_t num_tensors_ = 0;
  std::string metadata_;
  std::string tensors_;
  std::string data_;
};

}  // namespace pace

#endif  // PACE_FORMATS_GGUF_BUILDER_H_
