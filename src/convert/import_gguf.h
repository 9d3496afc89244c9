// GGUF files as models: architecture llama, qwen2 or qwen3, with the tokenizer
// inside.
//
// A metadata key of the architecture that is not known here is refused by name,
// unless it is switched off (0, false or "none"): nothing is ignored that could
// change the model. Llama 3's stretched rotary frequencies, which these files
// hold as the tensor rope_freqs.weight, are recognised and checked.
// Thread-safety: pure functions.
#ifndef PACE_CONVERT_IMPORT_GGUF_H_
#define PACE_CONVERT_IMPORT_GGUF_H_

#include <optional>
#include <string>

#include "convert/model_source.h"
#include "convert/tokenizer_spec.h"
#include "core/status.h"
#include "formats/gguf.h"
#include "model/model_config.h"

namespace pace {

inline constexpr std::string_view kRopeFrequencies = "rope_freqs.weight";

Result<ModelConfig> GgufModelConfig(const GgufFile& file);

// None where the file has no tokenizer. Models gpt2 (byte-level BPE, see
// tokenizer_spec.h) and llama (SentencePiece).
Result<std::optional<TokenizerSpec>> GgufTokenizer(const GgufFile& file);

// With `own_tokenizer` the source has no tokenizer files and the file's are not
// looked at.
Result<ModelSource> OpenGguf(const std::string& path, bool own_tokenizer);

}  // namespace pace

#endif  // PACE_CONVERT_IMPORT_GGUF_H_
