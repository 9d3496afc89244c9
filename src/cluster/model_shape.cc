#include "cluster/model_shape.h"

#include "core/exact_math.h"

namespace pace {
namespace {

double Real(int64_t value) {
  return static_cast<double>(value);
}

double EmbeddingParameters(const ModelOptions& model) {
  return Real(model.vocab) * Real(model.hidden);
}

// Query, key, value and output projections with the per-head norms of Qwen3,
// two layer norms, and the router where there are experts.
double LayerParametersWithoutFfn(const ModelOptions& model) {
  const double query = Real(model.num_heads) * Real(model.head_dim);
  const double key = Real(model.num_kv_heads) * Real(model.head_dim);
  const double hidden = Real(model.hidden);
  return hidden * (2 * query + 2 * key) + 2 * hidden + 2 * Real(model.head_dim) +
         hidden * Real(model.num_experts);
}

double FfnParameters(const ModelOptions& model, double num_experts) {
  return model.num_experts > 0 ? 3 * Real(model.hidden) * Real(model.expert_ffn) * num_experts
                               : 3 * Real(model.hidden) * Real(model.ffn);
}

double Parameters(const ModelOptions& model, double num_experts, double num_embeddings) {
  return Real(model.num_layers) *
             (LayerParametersWithoutFfn(model) + FfnParameters(model, num_experts)) +
         Real(model.hidden) + num_embeddings * EmbeddingParameters(model);
}

}  // namespace

double NumParameters(const ModelOptions& model) {
  return Parameters(model, Real(model.num_experts), model.tied_embeddings ? 1 : 2);
}

double NumActiveParameters(const ModelOptions& model) {
  return Parameters(model, Real(model.experts_per_token), 1);
}

double NumParametersRead(const ModelOptions& model, double batch) {
  double experts = 0;
  if (model.num_experts > 0) {
    const double share = Real(model.experts_per_token) / Real(model.num_experts);
    experts = Real(model.num_experts) * (1 - exact::Pow(1 - share, batch));
  }
  return Parameters(model, experts, 1);
}

double KvBytesPerToken(const ModelOptions& model) {
  return 2 * Real(model.num_layers) * Real(model.num_kv_heads) * Real(model.head_dim) *
         model.bytes_per_param;
}

double WeightBytes(const ModelOptions& model) {
  return NumParameters(model) * model.bytes_per_param;
}

double AttentionFlopsPerPair(const ModelOptions& model) {
  // A multiply and an add for the score, the same for the value.
  return 4 * Real(model.num_layers) * Real(model.num_heads) * Real(model.head_dim);
}

double VocabularyFlopsPerToken(const ModelOptions& model) {
  return 2 * EmbeddingParameters(model);
}

}  // namespace pace
