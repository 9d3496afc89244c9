// SafetensorsCheckpoint: the weights of a folder, in one file or in shards.
//
//   Result<SafetensorsCheckpoint> weights = SafetensorsCheckpoint::OpenFolder(folder);
//   for (const auto& [name, tensor] : weights->tensors()) ...
//
// Shards are listed by model.safetensors.index.json: its weight_map names the
// file of each tensor. Errors: a shard that is not there, a tensor that its
// shard does not hold, a tensor that two shards hold, a name listed twice. A
// tensor that a shard holds and the index does not list is read too, as
// `transformers` does.
// Thread-safety: immutable after opening.
#ifndef PACE_FORMATS_CHECKPOINT_H_
#define PACE_FORMATS_CHECKPOINT_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "formats/safetensors.h"

namespace pace {

inline constexpr std::string_view kSafetensorsFileName = "model.safetensors";
inline constexpr std::string_view kSafetensorsIndexName = "model.safetensors.index.json";

class SafetensorsCheckpoint {
 public:
  // model.safetensors if the folder has it, else the shards of its index.
  static Result<SafetensorsCheckpoint> OpenFolder(const std::string& folder);
  // One .safetensors file.
  static Result<SafetensorsCheckpoint> OpenFile(const std::string& path);
  // An index; shards are looked for beside it and may not lie elsewhere.
  static Result<SafetensorsCheckpoint> OpenIndex(const std::string& path);

  // The tensors of all files.
  const TensorViews& tensors() const { return tensors_; }
  const TensorView* Find(std::string_view name) const;
  const std::vector<SafetensorsFile>& files() const { return files_; }

 private:
  SafetensorsCheckpoint() = default;
  Status Add(SafetensorsFile file);

  std::vector<SafetensorsFile> files_;
  TensorViews tensors_;  // point into files_
};

}  // namespace pace

#endif  // PACE_FORMATS_CHECKPOINT_H_
