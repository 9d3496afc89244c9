#include "text/read_file.h"

#include <filesystem>
#include <fstream>

namespace pace {

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(path, error);
  std::ifstream file(path, std::ios::binary);
  if (is_folder || !file) return NotFound(path, ": cannot be read");
  // Read in blocks: what is no plain file does not say its size.
  std::string text;
  std::string block(size_t{1} << 20, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block, 0, static_cast<size_t>(file.gcount()));
    if (text.size() > max_bytes) {
      return InvalidArgument(path, ": larger than ", max_bytes, " bytes");
    }
  }
  if (file.bad()) return Unavailable(path, ": reading failed");
  return text;
}

}  // namespace pace
