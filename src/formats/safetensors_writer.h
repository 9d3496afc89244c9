// Writing safetensors, byte for byte as the Python package does: tensors sorted
// by falling dtype (the order of Dtype), then by name; no spaces in the header
// but for those that fill it to a multiple of 8 bytes. The package writes
// metadata in the order of a hash table; ours is sorted.
//
// Files are written aside, flushed and renamed (atomic_file.h): a reader that
// has the old file mapped keeps it, and a crash leaves the old one or the new.
// Thread-safety: pure but for the files.
#ifndef PACE_FORMATS_SAFETENSORS_WRITER_H_
#define PACE_FORMATS_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/status.h"
#include "formats/safetensors.h"
#include "formats/tensor_view.h"

namespace pace {

// What `transformers` requires of its files.
inline const SafetensorsMetadata kPyTorchMetadata = {{"format", "pt"}};

// Errors: bytes that do not fit dtype and shape, a name that is not UTF-8 or is
// __metadata__, a header above 100 MB.
Status WriteSafetensors(const std::string& path, const TensorViews& tensors,
                        const std::optional<SafetensorsMetadata>& metadata);

// Writes model.safetensors into an existing folder if the tensors fit into
// max_shard_bytes, else model-00001-of-0000N.safetensors and so on and, last,
// model.safetensors.index.json. Tensors are taken by name; a tensor above the
// limit has a shard to itself. The folder must hold no weights in this layout
// yet: a mix of two checkpoints would read as one.
// REQUIRES: max_shard_bytes > 0
Status WriteShardedSafetensors(const std::string& folder, const TensorViews& tensors,
                               const std::optional<SafetensorsMetadata>& metadata,
                               int64_t max_shard_bytes);

}  // namespace pace

#endif  // PACE_FORMATS_SAFETENSORS_WRITER_H_
