// GGUF tensors under their Hugging Face names, as floats.
//
// For the architectures llama, qwen2 and qwen3. `llama` files hold the rows of q
// and k interleaved; they become halves here (rope_rows.h). The others hold them
// as Hugging Face does. A tensor without a counterpart is an error that names
// it: rope_freqs.weight, for one, would change the model if it were dropped.
// Thread-safety: pure functions.
#ifndef PACE_FORMATS_GGUF_IMPORT_H_
#define PACE_FORMATS_GGUF_IMPORT_H_

#include <string>
#include <string_view>

#include "core/status.h"
#include "formats/gguf.h"
#include "formats/tensor_view.h"

namespace pace {

// blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight
Result<std::string> HuggingFaceName(std::string_view gguf_name);
// And back.
Result<std::string> GgufName(std::string_view hugging_face_name);

class GgufImporter {
 public:
  // Reads architecture and head counts; an architecture that is not listed
  // above is an error. Borrows the file.
  static Result<GgufImporter> Create(const GgufFile& file);

  // One tensor at a time, so that the whole model is never in memory as floats.
  Result<FloatTensor> Import(const GgufTensor& tensor) const;

 private:
  GgufImporter(const GgufFile& file, bool interleaved, int64_t num_heads, int64_t num_kv_heads)
      : file_(&file),
        interleaved_(interleaved),
        num_heads_(num_heads),
        num_kv_heads_(num_kv_heads) {}

  const GgufFile* file_;
  bool interleaved_;
  int64_t num_heads_;
  int64_t num_kv_heads_;
};

}  // namespace pace

#endif  // PACE_FORMATS_GGUF_IMPORT_H_
