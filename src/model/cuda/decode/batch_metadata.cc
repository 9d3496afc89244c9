#include "model/cuda/decode/batch_metadata.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "model/cuda/cache_layout.h"
#include "model/sampling.h"

namespace pace::cuda {
namespace {

static_assert(kPageTokens == kBlockTokens);

constexpr int64_t kLeastBytes = int64_t{1} << 20;

int64_t RoundUp(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

int64_t TilesOf(const Chunk& chunk, int64_t group) {
  return (chunk.num_tokens * group + kTileColumns - 1) / kTileColumns;
}

LogitsRequest LogitsRequestOf(const SampleRequest& sample) {
  const SamplingOptions& options = sample.options;
  LogitsRequest request;
  request.greedy = options.greedy() ? 1 : 0;
  request.top_k = static_cast<int32_t>(std::min<int64_t>(options.top_k, INT32_MAX));
  request.top_p = options.top_p;
  request.min_p = static_cast<float>(options.min_p);
  request.scale = options.scale();
  request.factor = static_cast<float>(1.0 / options.scale());
  request.uniform = UniformOf(sample.key);
  return request;
}

LogitsRequest LogitsRequestOf(const ScoreRequest& score) {
  LogitsRequest request;
  request.target = score.target;
  request.scale = score.scale;
  request.factor = static_cast<float>(1.0 / score.scale);
  return request;
}

}  // namespace

int64_t PaddedRows(int64_t num_rows) {
  if (num_rows <= 2) return num_rows;
  if (num_rows <= 8) return RoundUp(num_rows, 4);
  if (num_rows <= 64) return RoundUp(num_rows, 8);
  if (num_rows <= 256) return RoundUp(num_rows, 16);
  return num_rows <= 512 ? RoundUp(num_rows, 64) : 0;
}

bool IsDecodeOnly(const Pass& pass) {
  if (!pass.scores.empty() || pass.samples.size() != pass.tokens.size()) return false;
  if (pass.chunks.size() != pass.tokens.size()) return false;
  for (size_t i = 0; i < pass.samples.size(); ++i) {
    if (std::cmp_not_equal(pass.samples[i].row, i)) return false;
  }
  return true;
}

Result<bool> BatchMetadata::LayOut(const Pass& pass) {
  int64_t num_entries = 1;
  for (const Chunk& chunk : pass.chunks) num_entries += std::ssize(chunk.blocks);
  MemoryPlan plan;
  plan.Add(4 * shape_.num_rows);
  positions_ = plan.Add(4 * shape_.num_rows);
  tables_ = plan.Add(4 * shape_.num_rows);
  single_ = plan.Add(4 * shape_.num_single);
  tiles_ = plan.Add(shape_.num_tiles * static_cast<int64_t>(sizeof(QueryTile)));
  requested_ = plan.Add(4 * shape_.num_requests);
  requests_ = plan.Add(shape_.num_requests * static_cast<int64_t>(sizeof(LogitsRequest)));
  sources_ = plan.Add(4 * shape_.num_rows);
  blocks_ = plan.Add(4 * num_entries);
  const int64_t num_bytes = std::max(kLeastBytes, 2 * plan.num_bytes());
  if (plan.num_bytes() <= host().num_bytes()) return false;
  PACE_ASSIGN_OR_RETURN(PinnedMemory host, PinnedMemory::Allocate(num_bytes));
  PACE_ASSIGN_OR_RETURN(DeviceMemory device, DeviceMemory::Allocate(num_bytes, "tables"));
  copy() = {.host = std::move(host), .device = std::move(device)};
  return true;
}

Result<bool> BatchMetadata::Build(const Pass& pass, int64_t padded_rows,
                                  std::span<const int32_t> sources, int copy) {
  shape_ = {};
  shape_.copy = copy;
  shape_.num_rows = std::max(padded_rows, std::ssize(pass.tokens));
  shape_.num_requests = std::ssize(pass.samples) + std::ssize(pass.scores);
  for (const Chunk& chunk : pass.chunks) {
    if (chunk.num_tokens == 1) {
      ++shape_.num_single;
    } else {
      shape_.num_tiles += TilesOf(chunk, group_);
    }
  }
  if (padded_rows > 0) shape_.num_single = shape_.num_requests = padded_rows;
  for (const SampleRequest& sample : pass.samples) {
    if (sample.options.truncated() && !sample.options.greedy()) shape_.any_truncated = true;
  }
  const Result<bool> moved = LayOut(pass);
  if (!moved.ok()) return moved;
  num_blocks_ = 0;
  host().As<int32_t>(blocks_)[num_blocks_++] = spare_block_;
  AddChunks(pass);
  PadRows(std::ssize(pass.tokens));
  AddRequests(pass);
  AddSources(sources);
  num_bytes_ = blocks_ + 4 * num_blocks_;
  return moved;
}

void BatchMetadata::AddChunks(const Pass& pass) {
  std::copy(pass.tokens.begin(), pass.tokens.end(), host().As<int32_t>());
  int32_t row = 0;
  int64_t single = 0;
  int64_t tile = 0;
  for (const Chunk& chunk : pass.chunks) {
    if (chunk.num_tokens == 1) host().As<int32_t>(single_)[single++] = row;
    for (int64_t t = 0; chunk.num_tokens > 1 && t < TilesOf(chunk, group_); ++t) {
      host().As<QueryTile>(tiles_)[tile++] = {
          .first_row = row,
          .num_rows = static_cast<int32_t>(chunk.num_tokens),
          .first_column = static_cast<int32_t>(t * kTileColumns)};
    }
    for (int64_t i = 0; i < chunk.num_tokens; ++i, ++row) {
      host().As<int32_t>(positions_)[row] = static_cast<int32_t>(chunk.start + i);
      host().As<int32_t>(tables_)[row] = static_cast<int32_t>(num_blocks_);
    }
    std::copy(chunk.blocks.begin(), chunk.blocks.end(), host().As<int32_t>(blocks_) + num_blocks_);
    num_blocks_ += std::ssize(chunk.blocks);
  }
  // The longest contexts first, so that no long one is left at the end.
  const int32_t* const positions = host().As<int32_t>(positions_);
  const auto context = [&](const QueryTile& t) {
    return positions[t.first_row] + t.first_column / static_cast<int32_t>(group_);
  };
  std::ranges::stable_sort(std::span(host().As<QueryTile>(tiles_), static_cast<size_t>(tile)),
                           std::greater(), context);
}

void BatchMetadata::PadRows(int64_t from) {
  for (int64_t row = from; row < shape_.num_rows; ++row) {
    host().As<int32_t>()[row] = 0;
    host().As<int32_t>(positions_)[row] = 0;
    host().As<int32_t>(tables_)[row] = 0;
    host().As<int32_t>(single_)[row] = static_cast<int32_t>(row);
  }
}

void BatchMetadata::AddRequests(const Pass& pass) {
  int64_t count = 0;
  const auto add = [&](int64_t row, LogitsRequest request) {
    request.row = static_cast<int32_t>(count % kRequestsAtOnce);
    host().As<int32_t>(requested_)[count] = static_cast<int32_t>(row);
    host().As<LogitsRequest>(requests_)[count++] = request;
  };
  for (const SampleRequest& sample : pass.samples) add(sample.row, LogitsRequestOf(sample));
  for (const ScoreRequest& score : pass.scores) add(score.row, LogitsRequestOf(score));
  LogitsRequest greedy;
  greedy.greedy = 1;
  while (count < shape_.num_requests) add(count, greedy);
}

void BatchMetadata::AddSources(std::span<const int32_t> sources) {
  int32_t* const all = host().As<int32_t>(sources_);
  std::fill_n(std::ranges::copy(sources, all).out, shape_.num_rows - std::ssize(sources),
              kOwnToken);
}

Status BatchMetadata::Upload(cudaStream_t stream) const {
  return ToStatus(cudaMemcpyAsync(device().at(), host().As<char>(), static_cast<size_t>(num_bytes_),
                                  cudaMemcpyHostToDevice, stream),
                  "tables");
}

RowTables BatchMetadata::rows() const {
  return {.tokens = device().As<int32_t>(),
          .positions = device().As<int32_t>(positions_),
          .tables = device().As<int32_t>(tables_),
          .blocks = device().As<int32_t>(blocks_)};
}

AdvanceArguments BatchMetadata::advance(const LogitsResult* results) const {
  return {.sources = device().As<int32_t>(sources_),
          .results = results,
          .num_rows = shape_.num_rows,
          .tokens = device().As<int32_t>(),
          .positions = device().As<int32_t>(positions_),
          .tables = device().As<int32_t>(tables_)};
}

}  // namespace pace::cuda
