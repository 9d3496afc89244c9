// For tests: what LibTorch's allocator counts, and a rank that is alone but holds what it would
// hold among others. No clock, no pages: the same in every run.
#ifndef PACE_TRAIN_LONELY_RANK_H_
#define PACE_TRAIN_LONELY_RANK_H_

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "ranks/communicator.h"

namespace pace {

// Bytes of tensors that this thread made and that are still there, under a c10::DebugInfoGuard.
class LiveMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*data*/, int64_t size, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device /*device*/) override {
    bytes_ += size;
    peak_ = std::max(peak_, bytes_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t bytes() const { return bytes_; }
  int64_t peak() const { return peak_; }
  void StartPeak() { peak_ = bytes_; }

 private:
  int64_t bytes_ = 0;
  int64_t peak_ = 0;
};

// A communicator of rank 0 whose other ranks contribute zeros. Records the live memory (weights,
// moments and gradients) when the norm of the summed gradient is computed.
class LonelyRank final : public Communicator {
 public:
  LonelyRank(int64_t size, const LiveMemory& memory) : size_(size), memory_(memory) {}
  int64_t rank() const override { return 0; }
  int64_t size() const override { return size_; }
  int64_t bytes() const { return bytes_; }
  // The live memory at every gather of weights, its result included.
  const std::vector<int64_t>& at_gathers() const { return at_gathers_; }

 protected:
  Status Sum(const at::Tensor& tensor) override {
    if (tensor.scalar_type() == at::kDouble && tensor.numel() == 1) bytes_ = memory_.bytes();
    return Status::Ok();
  }
  Completion SumParts(const at::Tensor& all, const at::Tensor& own) override {
    own.copy_(all.narrow(0, 0, own.numel()));
    return Completed(Status::Ok());
  }
  Completion Collect(const at::Tensor& own, const at::Tensor& all) override {
    if (own.is_floating_point()) at_gathers_.push_back(memory_.bytes());
    all.view({size_, -1}).copy_(own.clone());  // it may be a part of `all`
    return Completed(Status::Ok());
  }
  Status Send(const at::Tensor& /*tensor*/, int64_t /*root*/, Patience /*patience*/) override {
    return Status::Ok();
  }

 private:
  const int64_t size_;
  const LiveMemory& memory_;
  int64_t bytes_ = 0;
  std::vector<int64_t> at_gathers_ = {};
};

}  // namespace pace

#endif  // PACE_TRAIN_LONELY_RANK_H_
