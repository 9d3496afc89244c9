#include "model/cpu/head.h"

#include <algorithm>
#include <cstring>

#include "model/cpu/row_loop.h"
#include "model/cpu/sampler.h"

namespace pace {
namespace {

// Rows whose logits are there at once: enough to use each weight well.
constexpr size_t kRowsAtOnce = 128;

}  // namespace

Head::Head(const ModelConfig& config, bool is_bf16, const Kernels& kernels, ThreadPool& threads)
    : vocab_size_(config.vocab_size),
      kernels_(kernels),
      threads_(threads),
      asked_(config.hidden_size, is_bf16),
      logits_(config.vocab_size, false),
      scratch_(static_cast<size_t>(threads.num_threads())) {}

void Head::CollectQuestions(const Pass& pass) {
  questions_.clear();
  for (size_t i = 0; i < pass.samples.size(); ++i) {
    questions_.push_back({.row = pass.samples[i].row, .is_sample = true, .index = i});
  }
  for (size_t i = 0; i < pass.scores.size(); ++i) {
    questions_.push_back({.row = pass.scores[i].row, .is_sample = false, .index = i});
  }
  std::sort(questions_.begin(), questions_.end(),
            [](const Question& a, const Question& b) { return a.row < b.row; });
  rows_.clear();
  first_question_.clear();
  for (size_t i = 0; i < questions_.size(); ++i) {
    if (!rows_.empty() && rows_.back() == questions_[i].row) continue;
    rows_.push_back(questions_[i].row);
    first_question_.push_back(i);
  }
  first_question_.push_back(questions_.size());
}

void Head::ComputeLogits(const Activations& hidden, const PackedMatrix& matrix, size_t begin,
                         size_t end, Gemm& gemm) {
  const auto num_rows = static_cast<int64_t>(end - begin);
  asked_.Reserve(num_rows);
  logits_.Reserve(num_rows);
  for (int64_t i = 0; i < num_rows; ++i) {
    std::memcpy(asked_.bytes(i), hidden.bytes(rows_[begin + static_cast<size_t>(i)]),
                static_cast<size_t>(hidden.row_bytes()));
  }
  const GemmProduct product = {.matrix = &matrix,
                               .x = asked_.data(),
                               .x_stride = asked_.stride(),
                               .num_rows = num_rows,
                               .out = logits_.data(),
                               .out_stride = logits_.stride()};
  gemm.Run({&product, 1});
}

void Head::Answer(const Pass& pass, const Question& question, std::span<const float> logits,
                  std::vector<float>& scratch, PassResult& result) const {
  if (question.is_sample) {
    const SampleRequest& request = pass.samples[question.index];
    result.samples[question.index] =
        SampleWith(kernels_, logits, request.options, request.key, scratch);
  } else {
    const ScoreRequest& request = pass.scores[question.index];
    result.logprobs[question.index] = LogProbWith(kernels_, logits, request.scale, request.target);
  }
}

PassResult Head::Run(const Pass& pass, const Activations& hidden, const PackedMatrix& matrix,
                     Gemm& gemm) {
  CollectQuestions(pass);
  PassResult result;
  result.samples.resize(pass.samples.size());
  result.logprobs.resize(pass.scores.size());
  for (size_t begin = 0; begin < rows_.size(); begin += kRowsAtOnce) {
    const size_t end = std::min(rows_.size(), begin + kRowsAtOnce);
    ComputeLogits(hidden, matrix, begin, end, gemm);
    const auto answer = [&](int64_t i, int64_t worker) {
      const std::span<const float> logits(logits_.floats(i), static_cast<size_t>(vocab_size_));
      const size_t at = begin + static_cast<size_t>(i);
      for (size_t q = first_question_[at]; q < first_question_[at + 1]; ++q) {
        Answer(pass, questions_[q], logits, scratch_[static_cast<size_t>(worker)], result);
      }
    };
    ForRows(threads_, static_cast<int64_t>(end - begin), 4 * vocab_size_, answer);
  }
  return result;
}

}  // namespace pace
