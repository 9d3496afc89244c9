#include "model/cpu/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "model/cpu/thread_pool.h"

namespace pace {

void RopeTable::Reserve(int64_t num_positions) {
  if (half() == 0) return;
  const int64_t have = static_cast<int64_t>(values_.size()) / (2 * half());
  if (num_positions <= have) return;
  // Doubles, so that a growing context costs little per token.
  const int64_t want = std::max({num_positions, 2 * have, int64_t{64}});
  values_.reserve(static_cast<size_t>(want * 2 * half()));
  for (int64_t position = have; position < want; ++position) {
    const auto at = static_cast<float>(position);
    for (const float frequency : frequencies_) values_.push_back(std::cos(at * frequency));
    for (const float frequency : frequencies_) values_.push_back(std::sin(at * frequency));
  }
}

CpuOps::CpuOps(const ModelConfig& config, bool is_bf16, const Kernels& kernels, ThreadPool& threads)
    : config_(config),
      kernels_(kernels),
      threads_(threads),
      gemm_(kernels, threads),
      attention_(config, kernels, threads),
      experts_(config, is_bf16, kernels, threads),
      rope_(config),
      residual_(config.hidden_size, false),
      normed_(config.hidden_size, is_bf16),
      qkv_(config.query_size() + 2 * config.kv_size(), false),
      attended_(config.query_size(), is_bf16),
      gated_(config.intermediate_size, is_bf16),
      norm_scratch_(config.hidden_size, false) {
  norm_scratch_.Reserve(threads.num_threads());
}

void CpuOps::Begin(const Pass& pass, KvCache& cache) {
  pass_ = &pass;
  cache_ = &cache;
  num_rows_ = static_cast<int64_t>(pass.tokens.size());
  positions_.clear();
  for (const Chunk& chunk : pass.chunks) {
    for (int64_t i = 0; i < chunk.num_tokens; ++i) positions_.push_back(chunk.start + i);
  }
  PACE_CHECK(static_cast<int64_t>(positions_.size()) == num_rows_, positions_.size(),
             " tokens in chunks, ", num_rows_, " in all");
  rope_.Reserve(*std::max_element(positions_.begin(), positions_.end()) + 1);
  attention_.Plan(pass.chunks);
  for (Activations* rows : {&residual_, &normed_, &qkv_, &attended_, &gated_}) {
    rows->Reserve(num_rows_);
  }
}

CpuOps::Rows CpuOps::Embed(const Matrix& embedding) {
  const Activations& table = embedding.rows;
  ForRows(threads_, num_rows_, table.width(), [&](int64_t row, int64_t) {
    const auto token = static_cast<int64_t>(pass_->tokens[static_cast<size_t>(row)]);
    if (table.is_bf16()) {
      kernels_.from_bf16(table.halves(token), table.width(), residual_.floats(row));
    } else {
      std::memcpy(residual_.floats(row), table.floats(token),
                  static_cast<size_t>(table.width()) * sizeof(float));
    }
  });
  return {&residual_};
}

CpuOps::Rows CpuOps::Norm(const Rows& x, const Vector& weight) {
  const int64_t width = x.at->width();
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  ForRows(threads_, num_rows_, width, [&](int64_t row, int64_t worker) {
    float* const out = normed_.is_bf16() ? norm_scratch_.floats(worker) : normed_.floats(row);
    kernels_.rms_norm(x.at->floats(row), weight.data(), width, epsilon, out);
    if (normed_.is_bf16()) kernels_.to_bf16(out, width, normed_.halves(row));
  });
  return {&normed_};
}

void CpuOps::Multiply(const Activations& x, const PackedMatrix& matrix, Epilogue epilogue,
                      Activations& out) {
  const GemmProduct product = {.matrix = &matrix,
                               .x = x.data(),
                               .x_stride = x.stride(),
                               .num_rows = num_rows_,
                               .epilogue = epilogue,
                               .out_is_bf16 = out.is_bf16(),
                               .out = out.data(),
                               .out_stride = out.stride()};
  gemm_.Run({&product, 1});
}

CpuOps::Rows CpuOps::Linear(const Rows& x, const Matrix& matrix) {
  PACE_CHECK(matrix.panels.num_outputs == qkv_.width(), "only the attention's input is linear");
  Multiply(*x.at, matrix.panels, Epilogue::kStore, qkv_);
  return {&qkv_};
}

CpuOps::Rows CpuOps::Gated(const Rows& x, const Matrix& gate_up) {
  Multiply(*x.at, gate_up.panels, Epilogue::kGated, gated_);
  return {&gated_};
}

void CpuOps::AddLinear(Rows& x, const Rows& y, const Matrix& matrix) {
  Multiply(*y.at, matrix.panels, Epilogue::kAdd, *x.at);
}

void CpuOps::Rotate(Rows& qkv, const Vector* q_norm, const Vector* k_norm) {
  const int64_t head_dim = config_.head_dim;
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  const auto turn = [&](float* heads, int64_t num_heads, const Vector* norm, int64_t position) {
    for (int64_t h = 0; h < num_heads; ++h) {
      float* const head = heads + h * head_dim;
      if (norm != nullptr) kernels_.rms_norm(head, norm->data(), head_dim, epsilon, head);
      kernels_.rotate(head, rope_.cosines(position), rope_.sines(position), rope_.half());
    }
  };
  ForRows(threads_, num_rows_, 4 * qkv.at->width(), [&](int64_t row, int64_t) {
    const int64_t position = positions_[static_cast<size_t>(row)];
    float* const heads = qkv.at->floats(row);
    turn(heads, config_.num_heads, q_norm, position);
    turn(heads + config_.query_size(), config_.num_kv_heads, k_norm, position);
  });
}

CpuOps::Rows CpuOps::Attend(const Rows& qkv, int64_t layer) {
  attention_.Run({.index = layer,
                  .qkv = qkv.at->floats(0),
                  .qkv_stride = qkv.at->stride(),
                  .out = attended_.data(),
                  .out_stride = attended_.stride(),
                  .out_is_bf16 = attended_.is_bf16()},
                 *cache_);
  return {&attended_};
}

CpuOps::Routing CpuOps::Route(const Rows& x, const Matrix& router) {
  return &experts_.Route(*x.at, num_rows_, router.panels, gemm_);
}

void CpuOps::AddExperts(Rows& x, const Rows& h, const Routing& routing,
                        const std::vector<Expert<CpuOps>>& experts) {
  expert_matrices_.clear();
  for (const Expert<CpuOps>& expert : experts) {
    expert_matrices_.push_back({.gate_up = &expert.gate_up.panels, .down = &expert.down.panels});
  }
  experts_.Add(*x.at, *h.at, *routing, expert_matrices_, gemm_);
}

}  // namespace pace
