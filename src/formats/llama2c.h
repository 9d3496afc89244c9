// Reading llama2.c's model files (version 0, without magic) and its tokenizers.
//
// A model file is seven int32 (dim, hidden_dim, n_layers, n_heads, n_kv_heads,
// vocab_size, seq_len; a negative vocab_size says that the output projection is
// not the embedding), then float32 weights, each kind for all layers together.
// They become these tensors, layer by layer, N from 0:
//
//   token_embedding_table  model.embed_tokens.weight
//   rms_att_weight         model.layers.N.input_layernorm.weight
//   wq, wk                 model.layers.N.self_attn.{q,k}_proj.weight  (rows reordered)
//   wv, wo                 model.layers.N.self_attn.{v,o}_proj.weight
//   rms_ffn_weight         model.layers.N.post_attention_layernorm.weight
//   w1, w2, w3             model.layers.N.mlp.{gate,down,up}_proj.weight
//   rms_final_weight       model.norm.weight
//   wcls                   lm_head.weight, only when not tied
//
// The rows of q and k change from interleaved to halves (rope_rows.h). The
// rotation tables before wcls are not read: llama2.c computes them itself, with
// base 10,000. Its norms use epsilon 1e-5.
// Thread-safety: pure but for reading files.
#ifndef PACE_FORMATS_LLAMA2C_H_
#define PACE_FORMATS_LLAMA2C_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "formats/tensor_view.h"

namespace pace {

struct Llama2cConfig {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t vocab_size = 0;
  int64_t max_positions = 0;
  bool tied = true;

  int64_t head_dim() const { return hidden_size / num_heads; }
};

inline constexpr double kLlama2cRopeBase = 10000.0;
inline constexpr double kLlama2cNormEpsilon = 1e-5;

struct Llama2cModel {
  Llama2cConfig config;
  std::vector<FloatTensor> tensors;
};

// The size of the file must be what the config says, to the byte.
Result<Llama2cModel> ReadLlama2cModel(const std::string& path);
Result<Llama2cModel> ParseLlama2cModel(std::span<const std::byte> file);

// A token as bytes, and its merge score.
struct Llama2cToken {
  std::string bytes;
  float score = 0;
};

struct Llama2cVocabulary {
  int64_t max_token_bytes = 0;
  std::vector<Llama2cToken> tokens;  // by id
};

// Tokens up to the end of the file, which does not tell their number.
Result<Llama2cVocabulary> ReadLlama2cVocabulary(const std::string& path);
Result<Llama2cVocabulary> ParseLlama2cVocabulary(std::span<const std::byte> file);

}  // namespace pace

#endif  // PACE_FORMATS_LLAMA2C_H_
