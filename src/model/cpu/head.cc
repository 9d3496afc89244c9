#include "model/cpu/head.h"

#include <algorithm>
#include <cstring>

#include "model/cpu/sampler.h"
#include "model/cpu/thread_pool.h"

namespace pace {
namespace {

// Rows whose logits are there at once: enough to use each weight well.
constexpr size_t kRowsAtOnce = 128;

}  // namespace

Head::Head(const ModelConfig& config, bool is_bf16, const Kernels& kernels, ThreadPool& threads)
    : vocab_size_(config.vocab_size),
      kernels_(kernels),
      threads_(threads),
      requested_(config.hidden_size, is_bf16),
      logits_(config.vocab_size, false),
      scratch_(static_cast<size_t>(threads.num_threads())) {}

void Head::CollectRequests(const Pass& pass) {
  requests_.clear();
  for (size_t i = 0; i < pass.samples.size(); ++i) {
    requests_.push_back({.row = pass.samples[i].row, .is_sample = true, .index = i});
  }
  for (size_t i = 0; i < pass.scores.size(); ++i) {
    requests_.push_back({.row = pass.scores[i].row, .is_sample = false, .index = i});
  }
  std::sort(requests_.begin(), requests_.end(),
            [](const LogitsRequest& a, const LogitsRequest& b) { return a.row < b.row; });
  rows_.clear();
  first_request_.clear();
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (!rows_.empty() && rows_.back() == requests_[i].row) continue;
    rows_.push_back(requests_[i].row);
    first_request_.push_back(i);
  }
  first_request_.push_back(requests_.size());
}

void Head::ComputeLogits(const Activations& hidden, const PackedMatrix& matrix, size_t begin,
                         size_t end, Gemm& gemm) {
  const auto num_rows = static_cast<int64_t>(end - begin);
  requested_.Reserve(num_rows);
  logits_.Reserve(num_rows);
  for (int64_t i = 0; i < num_rows; ++i) {
    std::memcpy(requested_.bytes(i), hidden.bytes(rows_[begin + static_cast<size_t>(i)]),
                static_cast<size_t>(hidden.row_bytes()));
  }
  const GemmProduct product = {.matrix = &matrix,
                               .x = requested_.data(),
                               .x_stride = requested_.stride(),
                               .num_rows = num_rows,
                               .out = logits_.data(),
                               .out_stride = logits_.stride()};
  gemm.Run({&product, 1});
}

void Head::Compute(const Pass& pass, const LogitsRequest& request, std::span<const float> logits,
                   std::vector<float>& scratch, PassResult& result) const {
  if (request.is_sample) {
    const SampleRequest& sample = pass.samples[request.index];
    result.samples[request.index] =
        SampleWith(kernels_, logits, sample.options, sample.key, scratch);
  } else {
    const ScoreRequest& score = pass.scores[request.index];
    result.logprobs[request.index] = LogProbWith(kernels_, logits, score.scale, score.target);
  }
}

PassResult Head::Run(const Pass& pass, const Activations& hidden, const PackedMatrix& matrix,
                     Gemm& gemm) {
  CollectRequests(pass);
  PassResult result;
  result.samples.resize(pass.samples.size());
  result.logprobs.resize(pass.scores.size());
  for (size_t begin = 0; begin < rows_.size(); begin += kRowsAtOnce) {
    const size_t end = std::min(rows_.size(), begin + kRowsAtOnce);
    ComputeLogits(hidden, matrix, begin, end, gemm);
    const auto answer = [&](int64_t i, int64_t worker) {
      const std::span<const float> logits(logits_.floats(i), static_cast<size_t>(vocab_size_));
      const size_t at = begin + static_cast<size_t>(i);
      for (size_t q = first_request_[at]; q < first_request_[at + 1]; ++q) {
        Compute(pass, requests_[q], logits, scratch_[static_cast<size_t>(worker)], result);
      }
    };
    ForRows(threads_, static_cast<int64_t>(end - begin), 4 * vocab_size_, answer);
  }
  return result;
}

}  // namespace pace
