#include "formats/tensor_spool.h"

#include <unistd.h>

#include <utility>

#include "core/check.h"
#include "core/printable.h"
#include "formats/float_encoding.h"

namespace pace {

Result<TensorSpool> TensorSpool::Create(const std::string& folder) {
  std::string path = Concat(folder, "/tensors.spool-", static_cast<int64_t>(::getpid()));
  PACE_ASSIGN_OR_RETURN(auto file, Files::Default().OpenToWrite(path, WriteMode::kNew));
  return TensorSpool(std::move(path), std::move(file));
}

TensorSpool::~TensorSpool() {
  if (file_ != nullptr) (void)Files::Default().Remove(path_);
}

Status TensorSpool::Add(const std::string& name, std::vector<int64_t> shape,
                        std::span<const float> values, Dtype dtype) {
  PACE_CHECK(file_ != nullptr, "a spool that is finished");
  const std::vector<std::byte> bytes = EncodeFloats(values, dtype);
  const Result<int64_t> expected = TensorBytes(dtype, shape);
  PACE_CHECK(expected.ok() && static_cast<size_t>(*expected) == bytes.size(), name, ": ",
             bytes.size(), " bytes");
  PACE_RETURN_IF_ERROR(file_->Append({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  entries_.push_back({name, dtype, std::move(shape), size_, bytes.size()});
  size_ += bytes.size();
  return Status::Ok();
}

Result<SpooledTensors> TensorSpool::Finish() {
  PACE_CHECK(file_ != nullptr, "a spool that is finished");
  PACE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path_));
  PACE_RETURN_IF_ERROR(Files::Default().Remove(path_));
  file_.reset();
  SpooledTensors tensors{.views = {}, .owner = std::make_shared<const MappedFile>(file)};
  for (Entry& entry : entries_) {
    const auto [view, is_new] = tensors.views.try_emplace(entry.name);
    if (!is_new) return InvalidArgument("tensor ", Printable(entry.name), ": occurs twice");
    view->second = {entry.dtype, std::move(entry.shape),
                    file.bytes().subspan(entry.begin, entry.num_bytes)};
  }
  return tensors;
}

}  // namespace pace
