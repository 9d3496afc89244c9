// The config of a folder, from its files.
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "model/config_tokens.h"
#include "model/model_config.h"

namespace pace {

Result<ModelConfig> ReadModelConfig(const std::string& folder, const std::string& file) {
  const std::string path = (std::filesystem::path(folder) / file).string();
  PACE_ASSIGN_OR_RETURN(const MappedFile text, MappedFile::Open(path));
  Result<ModelConfig> config = ParseModelConfig(text.text());
  if (!config.ok()) return config.status().At(path);

  const auto generation = std::filesystem::path(folder) / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(generation, ignored)) return config;
  PACE_ASSIGN_OR_RETURN(const MappedFile beside, MappedFile::Open(generation.string()));
  Result<std::vector<TokenId>> eos = ParseEndTokens(beside.text(), config->eos);
  if (!eos.ok()) return eos.status().At(generation.string());
  config->eos = std::move(*eos);
  PACE_RETURN_IF_ERROR(CheckEndTokens(*config).At(generation.string()));
  return config;
}

}  // namespace pace
