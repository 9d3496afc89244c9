// CudaOps, from last states to answers, and from answers to the next rows.
#include <algorithm>

#include "model/cuda/decode/cuda_ops.h"

namespace pace::cuda {

void CudaOps::Advance() {
  static_assert(BatchMetadata::kNumCopies == 2);
  AdvanceArguments arguments = tables_->advance(AnswersOf(1 - tables_->shape().copy));
  arguments.stops = stops_.As<int32_t>();
  arguments.num_stops = std::ssize(config_.eos);
  cuda::Advance(arguments, stream_);
}

void CudaOps::Ask(const Rows& x, const Matrix& head) {
  const int64_t num_questions = tables_->shape().num_questions;
  for (int64_t begin = 0; begin < num_questions; begin += kQuestionsAtOnce) {
    const int64_t count = std::min(kQuestionsAtOnce, num_questions - begin);
    cuda::Norm({.x = static_cast<const float*>(x.at),
                .rows = tables_->asked() + begin,
                .weight = x.norm,
                .epsilon = static_cast<float>(config_.norm_epsilon),
                .num_rows = count,
                .width = config_.hidden_size,
                .stride = hidden_stride_,
                .out = asked_,
                .element = element_},
               stream_);
    AnswerAsked(head, begin, count);
  }
}

void CudaOps::KeepStates(const Rows& x, void* states) {
  cuda::Norm({.x = static_cast<const float*>(x.at),
              .places = tables_->rows(),
              .weight = x.norm,
              .epsilon = static_cast<float>(config_.norm_epsilon),
              .num_rows = tables_->shape().num_rows,
              .width = config_.hidden_size,
              .stride = hidden_stride_,
              .out = states,
              .element = element_},
             stream_);
}

void CudaOps::AskKept(const void* states, const Matrix& head) {
  const int64_t num_questions = tables_->shape().num_questions;
  for (int64_t begin = 0; begin < num_questions; begin += kQuestionsAtOnce) {
    const int64_t count = std::min(kQuestionsAtOnce, num_questions - begin);
    Gather({.x = states,
            .rows = tables_->asked() + begin,
            .num_rows = count,
            .stride = hidden_stride_,
            .out = asked_,
            .element = element_},
           stream_);
    AnswerAsked(head, begin, count);
  }
}

void CudaOps::AnswerAsked(const Matrix& head, int64_t begin, int64_t count) {
  Multiply({.at = asked_}, head, count, false, logits_, logit_stride_);
  AnswerQuestions({.logits = logits_,
                   .stride = logit_stride_,
                   .vocab_size = config_.vocab_size,
                   .questions = tables_->questions() + begin,
                   .num_questions = count,
                   .any_truncated = tables_->shape().any_truncated,
                   .pieces = pieces_,
                   .answers = answers() + begin},
                  stream_);
}

}  // namespace pace::cuda
