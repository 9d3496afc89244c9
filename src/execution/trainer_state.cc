#include "execution/trainer_state.h"

#include <charconv>
#include <memory>
#include <utility>

#include "core/crc32c.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"

namespace pace {
namespace {

constexpr const char* kFileName = "/optimizer.safetensors";
// Of its metadata, which are texts.
constexpr const char* kUpdatesKey = "num_updates";
constexpr const char* kKlKey = "kl_coefficient";
constexpr const char* kInitialKey = "initial_crc32c";

template <typename Number>
std::optional<Number> MetadataNumber(const SafetensorsFile& file, const char* key) {
  if (!file.metadata().has_value()) return std::nullopt;
  const auto found = file.metadata()->find(key);
  if (found == file.metadata()->end()) return std::nullopt;
  const std::string& text = found->second;
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole ? std::optional<Number>(number) : std::nullopt;
}

}  // namespace

uint32_t ChecksumOf(const WeightSet& weights) {
  std::string parts;
  for (const auto& [name, view] : weights.views()) {
    const auto* bytes = reinterpret_cast<const char*>(view.bytes.data());
    parts += Concat(name, " ", Crc32c({bytes, view.bytes.size()}), "\n");
  }
  return Crc32c(parts);
}

Status SaveTrainerState(const std::string& folder, const Policy& policy,
                        const SavedTrainer& saved) {
  const TrainerState& state = saved.state;
  PACE_RETURN_IF_ERROR(SavePolicy(folder, policy, state.weights, Dtype::kF32));
  SafetensorsMetadata metadata = {{kUpdatesKey, Concat(state.num_updates)}};
  if (state.kl_coefficient != 0) metadata.emplace(kKlKey, Concat(state.kl_coefficient));
  if (saved.initial_checksum.has_value()) {
    metadata.emplace(kInitialKey, Concat(*saved.initial_checksum));
  }
  return WriteSafetensors(folder + kFileName, state.tensors, metadata);
}

Result<SavedTrainer> LoadTrainerState(const ModelConfig& config, const std::string& folder) {
  SavedTrainer saved;
  TrainerState& state = saved.state;
  PACE_ASSIGN_OR_RETURN(state.weights, WeightSet::Load(config, folder));
  PACE_ASSIGN_OR_RETURN(SafetensorsFile opened, SafetensorsFile::Open(folder + kFileName));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  const std::optional<int64_t> num_updates = MetadataNumber<int64_t>(*file, kUpdatesKey);
  if (!num_updates.has_value() || *num_updates < 0) {
    return DataLoss(file->path(), ": does not say ", kUpdatesKey);
  }
  state.num_updates = *num_updates;
  state.kl_coefficient = MetadataNumber<double>(*file, kKlKey).value_or(0);
  state.tensors = file->tensors();
  state.memory = file;
  saved.initial_checksum = MetadataNumber<uint32_t>(*file, kInitialKey);
  return saved;
}

}  // namespace pace
