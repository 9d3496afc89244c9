// Model folders as GGUF files: architecture llama, qwen2 or qwen3, with the
// tokenizer where GGUF can say it.
//
// Vectors stay F32, as llama.cpp has them; so do Llama 3's rotary divisors. With
// Q8_0 a matrix whose rows are no multiple of 32 is F16.
#ifndef PACE_CONVERT_EXPORT_GGUF_H_
#define PACE_CONVERT_EXPORT_GGUF_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convert/model_source.h"
#include "core/status.h"
#include "formats/gguf_writer.h"

namespace pace {

struct GgufExportOptions {
  uint32_t type = kGgmlF32;  // of matrices: F32, F16, BF16 or Q8_0
  bool tokenizer = true;
  std::string name;  // general.name
  std::function<void(int64_t done, int64_t total)> progress = [](int64_t, int64_t) {};
};

Status ExportGguf(const std::string& path, const ModelSource& source,
                  const GgufExportOptions& options);

// The metadata of the tokenizer among a folder's files. Byte-level BPE whose
// pre-tokenizer GGUF names, and SentencePiece; any other is refused by name.
Status PutGgufTokenizer(const std::vector<FolderText>& texts, const ModelConfig& config,
                        GgufWriter& writer);

}  // namespace pace

#endif  // PACE_CONVERT_EXPORT_GGUF_H_
