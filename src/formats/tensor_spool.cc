#include "formats/tensor_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/check.h"
#include "core/printable.h"
#include "formats/float_encoding.h"
#include "formats/mapped_file.h"

namespace pace {

Result<TensorSpool> TensorSpool::Create(const std::string& folder) {
  std::string path = (std::filesystem::path(folder) / "tensors.spool-XXXXXX").string();
  const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return Unavailable(path, ": cannot be created: ", std::strerror(errno));
  return TensorSpool(std::move(path), descriptor);
}

TensorSpool::TensorSpool(TensorSpool&& other) noexcept
    : path_(std::exchange(other.path_, std::string())),
      descriptor_(other.descriptor_),
      size_(other.size_),
      entries_(std::move(other.entries_)) {}

TensorSpool::~TensorSpool() {
  Close();
}

void TensorSpool::Close() {
  if (path_.empty()) return;
  ::close(descriptor_);
  ::unlink(path_.c_str());
  path_.clear();
}

Status TensorSpool::Add(const std::string& name, std::vector<int64_t> shape,
                        std::span<const float> values, Dtype dtype) {
  PACE_CHECK(!path_.empty(), "a spool that is finished");
  const std::vector<std::byte> bytes = EncodeFloats(values, dtype);
  const Result<int64_t> expected = TensorBytes(dtype, shape);
  PACE_CHECK(expected.ok() && static_cast<size_t>(*expected) == bytes.size(), name, ": ",
             bytes.size(), " bytes");
  std::span<const std::byte> left = bytes;
  while (!left.empty()) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Unavailable(path_, ": cannot be written: ", std::strerror(errno));
    left = left.subspan(static_cast<size_t>(written));
  }
  entries_.push_back({name, dtype, std::move(shape), size_, bytes.size()});
  size_ += bytes.size();
  return Status::Ok();
}

Result<SpooledTensors> TensorSpool::Finish() {
  PACE_CHECK(!path_.empty(), "a spool that is finished");
  PACE_ASSIGN_OR_RETURN(MappedFile opened, MappedFile::Open(path_));
  Close();
  const auto file = std::make_shared<const MappedFile>(std::move(opened));
  SpooledTensors tensors{.views = {}, .owner = file};
  for (Entry& entry : entries_) {
    const auto [place, is_new] = tensors.views.try_emplace(entry.name);
    if (!is_new) return InvalidArgument("tensor ", Printable(entry.name), ": occurs twice");
    place->second = {entry.dtype, std::move(entry.shape),
                     file->bytes().subspan(entry.begin, entry.num_bytes)};
  }
  return tensors;
}

}  // namespace pace
