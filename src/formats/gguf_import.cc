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

// The counterpart of `name` in the one direction or the other; empty if it has
// none.
template <size_t kSize>
std::string_view Lookup(const std::array<Pair, kSize>& pairs, std::string_view Pair::* from,
                        std::string_view Pair::* to, std::string_view name) {
  for (const Pair& pair : pairs) {
    if (pair.*from == name) return pair.*to;
  }
  return {};
}

bool IsNumber(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= 6 && std::all_of(text.begin(), text.end(), is_digit);
}

constexpr std::string_view kGgufLayer = "blk.";
constexpr std::string_view kHuggingFaceLayer = "model.layers.";

// Empty if the name has no counterpart.
std::string Renamed(std::string_view name, std::string_view Pair::* from,
                    std::string_view Pair::* to, std::string_view from_layer,
                    std::string_view to_layer) {
  const std::string_view whole = Lookup(kWholeNames, from, to, name);
  if (!whole.empty()) return std::string(whole);
  if (!name.starts_with(from_layer)) return {};
  const std::string_view rest = name.substr(from_layer.size());
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos || !IsNumber(rest.substr(0, dot))) return {};
  const std::string_view part = Lookup(kLayerNames, from, to, rest.substr(dot + 1));
  return part.empty() ? std::string() : Concat(to_layer, rest.substr(0, dot), ".", part);
}

}  // namespace

Result<std::string> HuggingFaceName(std::string_view gguf_name) {
  std::string name =
      Renamed(gguf_name, &Pair::gguf, &Pair::hugging_face, kGgufLayer, kHuggingFaceLayer);
  if (!name.empty()) return name;
  return InvalidArgument("tensor ", Printable(gguf_name),
                         ": has no counterpart among the Hugging Face names of llama, qwen2, "
                         "qwen3");
}

Result<std::string> GgufName(std::string_view hugging_face_name) {
  std::string name =
      Renamed(hugging_face_name, &Pair::hugging_face, &Pair::gguf, kHuggingFaceLayer, kGgufLayer);
  if (!name.empty()) return name;
  return InvalidArgument("tensor ", Printable(hugging_face_name),
                         ": has no counterpart among the GGUF names of llama, qwen2, qwen3");
}

Result<GgufImporter> GgufImporter::Create(const GgufFile& file) {
  PACE_ASSIGN_OR_RETURN(const std::string architecture, file.Text("general.architecture"));
  const bool interleaved = architecture == "llama";
  if (!interleaved && architecture != "qwen2" && architecture != "qwen3") {
    return InvalidArgument(file.path(),
                           ": metadata general.architecture = ", Printable(architecture),
                           ": must be llama, qwen2 or qwen3");
  }
  const Result<int64_t> heads = file.Integer(architecture + ".attention.head_count");
  if (!heads.ok()) return heads.status();
  // Without the key, every head has its own k and v.
  const std::string kv_key = architecture + ".attention.head_count_kv";
  const bool has_kv = file.metadata().contains(kv_key);
  PACE_ASSIGN_OR_RETURN(const int64_t kv_heads, has_kv ? file.Integer(kv_key) : heads);
  constexpr int64_t kMaxHeads = 1 << 20;
  if (*heads < 1 || *heads > kMaxHeads || kv_heads < 1 || kv_heads > kMaxHeads) {
    return InvalidArgument(file.path(), ": metadata ", architecture,
                           ".attention.head_count = ", *heads, ", head_count_kv = ", kv_heads,
                           ": must be in 1 .. ", kMaxHeads);
  }
  return GgufImporter(file, interleaved, *heads, kv_heads);
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
