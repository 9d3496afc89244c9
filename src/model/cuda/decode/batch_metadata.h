// BatchMetadata: the arrays that kernels of a pass read (tokens, positions, block tables,
// logits requests), in one buffer that is uploaded by one copy.
//
// The offsets in the buffer depend on the shape alone, so a graph that was captured for a
// shape serves every pass of that shape.
// Thread-safety: none.
#ifndef PACE_MODEL_CUDA_DECODE_BATCH_METADATA_H_
#define PACE_MODEL_CUDA_DECODE_BATCH_METADATA_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/cuda/decode/attention_kernels.h"
#include "model/cuda/decode/logits_kernels.h"
#include "model/cuda/device_memory.h"
#include "model/cuda/kernels.h"
#include "model/decoder.h"

namespace pace::cuda {

// The sizes that kernels are launched with.
struct PassShape {
  int64_t num_rows = 0;
  int64_t num_single = 0;  // rows that are a chunk of their own
  int64_t num_tiles = 0;
  int64_t num_requests = 0;
  bool any_truncated = false;
  int copy = 0;  // of BatchMetadata
  friend auto operator<=>(const PassShape&, const PassShape&) = default;
};

// The number of rows that a decode pass is padded to, so that few graphs serve all passes.
// 0: too many rows for a graph.
int64_t PaddedRows(int64_t num_rows);

// True if every chunk is one row with one sample request, in order.
bool IsDecodeOnly(const Pass& pass);

class BatchMetadata {
 public:
  static constexpr int kNumCopies = 2;

  // `spare_block` is one that no pass names. `group`: heads that share one.
  BatchMetadata(BlockId spare_block, int64_t group) : spare_block_(spare_block), group_(group) {}

  // Fills one of kNumCopies buffers; the pass that used it before must have ended. A pass that
  // IsDecodeOnly is padded to padded_rows with rows of the spare block; its rows take their
  // tokens from the results that `sources` names, unless it is empty. True if the buffer on the
  // device moved.
  Result<bool> Build(const Pass& pass, int64_t padded_rows, std::span<const int32_t> sources,
                     int copy);
  Status Upload(cudaStream_t stream) const;

  const PassShape& shape() const { return shape_; }
  RowTables rows() const;
  // For Advance, with `results` of the last pass.
  AdvanceArguments advance(const LogitsResult* results) const;
  const int32_t* single() const { return device().As<int32_t>(single_); }
  const QueryTile* tiles() const { return device().As<QueryTile>(tiles_); }
  const int32_t* requested_rows() const { return device().As<int32_t>(requested_); }
  const LogitsRequest* requests() const { return device().As<LogitsRequest>(requests_); }

 private:
  Result<bool> LayOut(const Pass& pass);
  void AddChunks(const Pass& pass);
  void PadRows(int64_t from);
  void AddRequests(const Pass& pass);
  void AddSources(std::span<const int32_t> sources);

  const BlockId spare_block_;
  const int64_t group_;
  PassShape shape_;
  struct Copy {
    PinnedMemory host;
    DeviceMemory device;
  };
  Copy& copy() { return copies_[static_cast<size_t>(shape_.copy)]; }
  const PinnedMemory& host() const { return copies_[static_cast<size_t>(shape_.copy)].host; }
  const DeviceMemory& device() const { return copies_[static_cast<size_t>(shape_.copy)].device; }

  int64_t num_bytes_ = 0;
  int64_t positions_ = 0;  // offsets; tokens come first
  int64_t tables_ = 0;
  int64_t single_ = 0;
  int64_t tiles_ = 0;
  int64_t requested_ = 0;
  int64_t requests_ = 0;
  int64_t sources_ = 0;
  int64_t blocks_ = 0;      // the first is the spare block
  int64_t num_blocks_ = 0;  // entries that are filled
  std::array<Copy, kNumCopies> copies_;
};

// Requests whose logits are computed at a time.
inline constexpr int64_t kRequestsAtOnce = 256;

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_BATCH_METADATA_H_
