#include "formats/gguf_import.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/printable.h"
#include "formats/dtype.h"
#include "formats/rope_rows.h"

namespace pace {
namespace {

struct Pair {
  std::string_view gguf;
  std::string_view hugging_face;
};

constexpr auto kWholeNames = std::to_array<Pair>({
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
});

// Behind blk.N. and model.layers.N.
constexpr auto kLayerNames = std::to_array<Pair>({
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
});

template <size_t kSize>
std::string_view Lookup(const std::array<Pair, kSize>& pairs, std::string_view gguf) {
  for (const Pair& pair : pairs) {
    if (pair.gguf == gguf) return pair.hugging_face;
  }
  return {};
}

bool IsNumber(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= 6 && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

Result<std::string> HuggingFaceName(std::string_view gguf_name) {
  constexpr std::string_view kLayer = "blk.";
  std::string_view name = Lookup(kWholeNames, gguf_name);
  if (!name.empty()) return std::string(name);
  if (gguf_name.starts_with(kLayer)) {
    const std::string_view rest = gguf_name.substr(kLayer.size());
    const size_t dot = rest.find('.');
    if (dot != std::string_view::npos && IsNumber(rest.substr(0, dot))) {
      name = Lookup(kLayerNames, rest.substr(dot + 1));
      if (!name.empty()) return Concat("model.layers.", rest.substr(0, dot), ".", name);
    }
  }
  return InvalidArgument("tensor ", Printable(gguf_name),
                         ": has no counterpart among the Hugging Face names of llama, qwen2, "
                         "qwen3");
}

Result<GgufImporter> GgufImporter::Create(const GgufFile& file) {
  const Result<std::string> architecture = file.Text("general.architecture");
  if (!architecture.ok()) return architecture.status();
  const bool interleaved = *architecture == "llama";
  if (!interleaved && *architecture != "qwen2" && *architecture != "qwen3") {
    return InvalidArgument(file.path(),
                           ": metadata general.architecture = ", Printable(*architecture),
                           ": must be llama, qwen2 or qwen3");
  }
  const Result<int64_t> heads = file.Integer(*architecture + ".attention.head_count");
  if (!heads.ok()) return heads.status();
  // Without the key, every head has its own k and v.
  const std::string kv_key = *architecture + ".attention.head_count_kv";
  const bool has_kv = file.metadata().contains(kv_key);
  const Result<int64_t> kv_heads = has_kv ? file.Integer(kv_key) : heads;
  if (!kv_heads.ok()) return kv_heads.status();
  constexpr int64_t kMaxHeads = 1 << 20;
  if (*heads < 1 || *heads > kMaxHeads || *kv_heads < 1 || *kv_heads > kMaxHeads) {
    return InvalidArgument(file.path(), ": metadata ", *architecture,
                           ".attention.head_count = ", *heads, ", head_count_kv = ", *kv_heads,
                           ": must be in 1 .. ", kMaxHeads);
  }
  return GgufImporter(file, interleaved, *heads, *kv_heads);
}

Result<FloatTensor> GgufImporter::Import(const GgufTensor& tensor) const {
  Result<std::string> name = HuggingFaceName(tensor.name);
  if (!name.ok()) return name.status().At(file_->path());
  Result<std::vector<float>> values = Dequantize(tensor);
  if (!values.ok()) return values.status().At(file_->path());
  FloatTensor out{std::move(*name), tensor.shape, std::move(*values)};
  const bool is_q = out.name.find(".q_proj.") != std::string::npos;
  const bool is_k = out.name.find(".k_proj.") != std::string::npos;
  if (!interleaved_ || !(is_q || is_k)) return out;

  const int64_t heads = is_q ? num_heads_ : num_kv_heads_;
  const int64_t num_rows = out.shape.empty() ? 0 : out.shape[0];
  if (num_rows == 0 || num_rows % (2 * heads) != 0) {
    return InvalidArgument(file_->path(), ": tensor ", Printable(tensor.name),
                           ": shape = ", ShapeText(out.shape), ": must hold ", heads,
                           " heads of even size");
  }
  out.values = InterleavedToHalves(out.values, heads, num_rows / heads);
  return out;
}

}  // namespace pace
