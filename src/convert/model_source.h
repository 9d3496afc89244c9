// ModelSource: a model in any format, one tensor at a time, and the Hugging Face
// folder made of it.
//
// An importer fills it in; WriteModelFolder pulls the tensors through, so no
// model has to fit in memory, and checks that they are what the config says.
// Thread-safety: none.
#ifndef PACE_CONVERT_MODEL_SOURCE_H_
#define PACE_CONVERT_MODEL_SOURCE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convert/tokenizer_spec.h"
#include "core/status.h"
#include "formats/tensor_view.h"
#include "model/model_config.h"

namespace pace {

struct ModelSource {
  ModelConfig config;
  std::vector<FolderText> texts;  // the tokenizer's files, and others to copy
  int64_t num_tensors = 0;
  // Tensor 0, 1, ... under its Hugging Face name, each asked for once. It keeps
  // alive what it reads from.
  std::function<Result<FloatTensor>(int64_t)> tensor;
};

// Whether a config that an importer made is one that config.json may say.
Status CheckModelConfig(const ModelConfig& config);

struct ModelFolderOptions {
  Dtype dtype = Dtype::kF32;  // F32, F16 or BF16
  int64_t max_shard_bytes = int64_t{5'000'000'000};
  // Called after every tensor.
  std::function<void(int64_t done, int64_t total)> progress = [](int64_t, int64_t) {};
};

// The folder appears whole or not at all. `target` must not be there, or be empty.
Status WriteModelFolder(const std::string& target, const ModelSource& source,
                        const ModelFolderOptions& options);

// A model folder as a source: its config, its weights, the files beside them.
Result<ModelSource> OpenModelFolder(const std::string& folder);

// The tokenizer's files of a folder, those that there are.
Result<std::vector<FolderText>> ReadTokenizerFiles(const std::string& folder);

}  // namespace pace

#endif  // PACE_CONVERT_MODEL_SOURCE_H_
