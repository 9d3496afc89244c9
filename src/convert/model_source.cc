#include "convert/model_source.h"

#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "core/atomic_file.h"
#include "core/file.h"
#include "formats/tensor_spool.h"
#include "model/model_config_json.h"
#include "model/weight_set.h"

namespace pace {
namespace {

// The largest of them are vocabularies.
constexpr size_t kMaxTextBytes = size_t{256} << 20;

constexpr std::string_view kConfigName = "config.json";
constexpr auto kTokenizerFiles = std::to_array<std::string_view>(
    {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
     "chat_template.jinja", "vocab.json", "merges.txt", "tokenizer.model"});

Status ReadIfThere(const std::filesystem::path& folder, std::string_view name,
                   std::vector<FolderText>& out) {
  const std::filesystem::path path = folder / name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(std::string text, ReadFile(path.string(), kMaxTextBytes));
  out.push_back({std::string(name), std::move(text)});
  return Status::Ok();
}

Result<WeightSet> SpoolWeights(const std::string& folder, const ModelSource& source,
                               const ModelFolderOptions& options) {
  PACE_ASSIGN_OR_RETURN(TensorSpool spool, TensorSpool::Create(folder));
  for (int64_t i = 0; i < source.num_tensors; ++i) {
    PACE_ASSIGN_OR_RETURN(FloatTensor tensor, source.tensor(i));
    PACE_RETURN_IF_ERROR(
        spool.Add(tensor.name, std::move(tensor.shape), tensor.values, options.dtype));
    options.progress(i + 1, source.num_tensors);
  }
  PACE_ASSIGN_OR_RETURN(SpooledTensors tensors, spool.Finish());
  return WeightSet::Create(source.config, std::move(tensors.views), std::move(tensors.owner));
}

}  // namespace

Status CheckModelConfig(const ModelConfig& config) {
  return ParseModelConfig(ModelConfigJson(config)).status();
}

Status WriteModelFolder(const std::string& target, const ModelSource& source,
                        const ModelFolderOptions& options) {
  PACE_ASSIGN_OR_RETURN(AtomicFolder folder, AtomicFolder::Create(target));
  const std::string path = folder.path().string();
  PACE_ASSIGN_OR_RETURN(const WeightSet weights, SpoolWeights(path, source, options));
  PACE_RETURN_IF_ERROR(
      SaveModel(path, source.config, weights, options.dtype, options.max_shard_bytes));
  for (const FolderText& text : source.texts) {
    const bool is_config = text.name == kConfigName;
    PACE_ASSIGN_OR_RETURN(const std::string stored, is_config
                                                        ? WithStoredDtype(text.text, options.dtype)
                                                        : Result<std::string>(text.text));
    PACE_RETURN_IF_ERROR(WriteFileAtomically((folder.path() / text.name).string(), stored));
  }
  return folder.Commit();
}

Result<ModelSource> OpenModelFolder(const std::string& folder) {
  PACE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(folder));
  PACE_ASSIGN_OR_RETURN(WeightSet loaded, WeightSet::Load(config, folder));
  PACE_ASSIGN_OR_RETURN(std::vector<FolderText> texts, ReadTokenizerFiles(folder));
  // They may say more than we write: how to sample, for one.
  PACE_RETURN_IF_ERROR(ReadIfThere(folder, "generation_config.json", texts));
  PACE_RETURN_IF_ERROR(ReadIfThere(folder, kConfigName, texts));

  const auto weights = std::make_shared<const WeightSet>(std::move(loaded));
  auto parameters = std::make_shared<const std::vector<Parameter>>(ParametersOf(config));
  ModelSource source{.config = config,
                     .texts = std::move(texts),
                     .num_tensors = static_cast<int64_t>(parameters->size()),
                     .tensor = {}};
  source.tensor = [weights, parameters](int64_t index) -> Result<FloatTensor> {
    const Parameter& parameter = (*parameters)[static_cast<size_t>(index)];
    return FloatTensor{parameter.name, parameter.shape, weights->Floats(parameter.name)};
  };
  return source;
}

Result<std::vector<FolderText>> ReadTokenizerFiles(const std::string& folder) {
  std::vector<FolderText> texts;
  for (const std::string_view name : kTokenizerFiles) {
    PACE_RETURN_IF_ERROR(ReadIfThere(folder, name, texts));
  }
  return texts;
}

}  // namespace pace
