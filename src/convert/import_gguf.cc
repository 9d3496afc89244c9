#include "convert/import_gguf.h"

#include <memory>
#include <utility>

#include "formats/gguf_import.h"

namespace pace {
namespace {

// The file, and what reads it: they live as long as the source's function.
struct OpenFile {
  GgufFile file;
  std::vector<const GgufTensor*> tensors;
  std::optional<GgufImporter> importer;
};

Status ReadTokenizer(const GgufFile& file, ModelSource& source) {
  PACE_ASSIGN_OR_RETURN(const std::optional<TokenizerSpec> spec, GgufTokenizer(file));
  if (!spec.has_value()) return Status::Ok();
  if (static_cast<int64_t>(spec->tokens.size()) > source.config.vocab_size) {
    return InvalidArgument(file.path(), ": metadata tokenizer.ggml.tokens: ", spec->tokens.size(),
                           " tokens, but token_embd.weight has ", source.config.vocab_size,
                           " rows");
  }
  Result<std::vector<FolderText>> texts = TokenizerFiles(*spec);
  if (!texts.ok()) return texts.status().At(file.path());
  source.texts = std::move(texts).value();
  return Status::Ok();
}

}  // namespace

Result<ModelSource> OpenGguf(const std::string& path, bool own_tokenizer) {
  PACE_ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open(path));
  PACE_ASSIGN_OR_RETURN(ModelConfig config, GgufModelConfig(file));
  PACE_RETURN_IF_ERROR(CheckModelConfig(config).At(path));
  ModelSource source{.config = std::move(config), .texts = {}, .num_tensors = 0, .tensor = {}};
  if (!own_tokenizer) PACE_RETURN_IF_ERROR(ReadTokenizer(file, source));

  const auto open =
      std::make_shared<OpenFile>(OpenFile{.file = std::move(file), .tensors = {}, .importer = {}});
  for (const GgufTensor& tensor : open->file.tensors()) {
    // The config says what it says.
    if (tensor.name != kRopeFrequencies) open->tensors.push_back(&tensor);
  }
  PACE_ASSIGN_OR_RETURN(open->importer, GgufImporter::Create(open->file));
  source.num_tensors = static_cast<int64_t>(open->tensors.size());
  source.tensor = [open](int64_t index) {
    return open->importer->Import(*open->tensors[static_cast<size_t>(index)]);
  };
  return source;
}

}  // namespace pace
