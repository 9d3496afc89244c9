#include "model/speculative_pass.h"

#include <algorithm>
#include <optional>

#include "core/check.h"

namespace pace {
namespace {

constexpr int32_t kNone = -1;

// The sample of the last row of each chunk, or kNone. Nothing if samples are in another order
// or of other rows.
std::optional<std::vector<int32_t>> SamplesOf(const Pass& pass) {
  std::vector<int32_t> samples(pass.chunks.size(), kNone);
  size_t num_found = 0;
  int64_t num_rows = 0;
  for (size_t c = 0; c < pass.chunks.size(); ++c) {
    num_rows += pass.chunks[c].num_tokens;
    if (num_found == pass.samples.size() || pass.samples[num_found].row != num_rows - 1) continue;
    samples[c] = static_cast<int32_t>(num_found++);
  }
  if (num_found < pass.samples.size()) return std::nullopt;
  return samples;
}

int64_t EndOf(const Chunk& chunk) {
  return chunk.start + chunk.num_tokens;
}

bool HasRoomFor(const Chunk& chunk, int64_t num_tokens) {
  return std::ssize(chunk.blocks) * kBlockTokens >= num_tokens;
}

}  // namespace

SpeculativePass::SpeculativePass(const Pass& pass) {
  const std::optional<std::vector<int32_t>> samples = SamplesOf(pass);
  if (!samples || pass.samples.size() != pass.chunks.size() || !pass.scores.empty()) return;
  size_t num_blocks = 0;
  for (const Chunk& chunk : pass.chunks) num_blocks += chunk.blocks.size();
  blocks_.reserve(num_blocks);  // chunks point into it
  for (size_t c = 0; c < pass.chunks.size(); ++c) {
    const Chunk& chunk = pass.chunks[c];
    if (!HasRoomFor(chunk, EndOf(chunk) + 1)) continue;
    const size_t first = blocks_.size();
    blocks_.insert(blocks_.end(), chunk.blocks.begin(), chunk.blocks.end());
    pass_.chunks.push_back({.start = EndOf(chunk),
                            .num_tokens = 1,
                            .blocks = std::span(blocks_).subspan(first, chunk.blocks.size())});
    SampleRequest sample = pass.samples[c];
    sample.row = std::ssize(pass_.samples);
    ++sample.key.token;
    pass_.samples.push_back(sample);
    sources_.push_back(static_cast<int32_t>(c));
  }
  pass_.tokens.resize(pass_.chunks.size(), 0);
  stopped_.resize(pass_.chunks.size(), false);
}

void SpeculativePass::SetTokens(std::span<const Sampled> sampled, std::span<const TokenId> stops) {
  for (size_t row = 0; row < sources_.size(); ++row) {
    const auto source = static_cast<size_t>(sources_[row]);
    PACE_CHECK(source < sampled.size(), sampled.size(), " samples");
    pass_.tokens[row] = sampled[source].token;
    stopped_[row] = std::ranges::find(stops, sampled[source].token) != stops.end();
  }
}

bool SpeculativePass::IsRow(size_t row, const Pass& pass, size_t chunk) const {
  const Chunk& ran = pass_.chunks[row];
  const Chunk& asked = pass.chunks[chunk];
  const int64_t num_blocks = (EndOf(ran) + kBlockTokens - 1) / kBlockTokens;
  return asked.start == ran.start && asked.num_tokens == 1 &&
         std::ranges::equal(asked.blocks.first(static_cast<size_t>(num_blocks)),
                            ran.blocks.first(static_cast<size_t>(num_blocks)));
}

std::vector<int32_t> SpeculativePass::Find(const Pass& pass) const {
  std::vector<int32_t> found(pass.chunks.size(), kNone);
  const std::optional<std::vector<int32_t>> samples = SamplesOf(pass);
  if (empty() || !samples || !pass.scores.empty()) return found;
  const size_t num_rows = sources_.size();
  size_t next = 0;  // rows come in the order of chunks, as a rule
  int64_t row_end = 0;
  for (size_t c = 0; c < pass.chunks.size(); ++c) {
    row_end += pass.chunks[c].num_tokens;
    if ((*samples)[c] == kNone) continue;
    const SampleRequest& sample = pass.samples[static_cast<size_t>((*samples)[c])];
    const TokenId token = pass.tokens[static_cast<size_t>(row_end - 1)];
    for (size_t i = 0; i < num_rows; ++i) {
      const size_t row = (next + i) % num_rows;
      const SampleRequest& ran = pass_.samples[row];
      if (ran.key != sample.key || ran.options != sample.options) continue;
      if (stopped_[row] || pass_.tokens[row] != token || !IsRow(row, pass, c)) continue;
      found[c] = static_cast<int32_t>(row);
      next = row + 1;
      break;
    }
  }
  return found;
}

Pass WithoutFound(const Pass& pass, std::span<const int32_t> found) {
  PACE_CHECK(found.size() == pass.chunks.size() && pass.scores.empty(), found.size());
  Pass rest;
  const std::optional<std::vector<int32_t>> samples = SamplesOf(pass);
  PACE_CHECK(samples.has_value(), "samples in the order of chunks");
  int64_t begin = 0;
  for (size_t c = 0; c < pass.chunks.size(); ++c) {
    const int64_t end = begin + pass.chunks[c].num_tokens;
    if (found[c] == kNone) {
      rest.chunks.push_back(pass.chunks[c]);
      rest.tokens.insert(rest.tokens.end(), pass.tokens.begin() + begin, pass.tokens.begin() + end);
      if ((*samples)[c] != kNone) {
        rest.samples.push_back(pass.samples[static_cast<size_t>((*samples)[c])]);
        rest.samples.back().row = std::ssize(rest.tokens) - 1;
      }
    }
    begin = end;
  }
  return rest;
}

PassResult JoinFound(const Pass& pass, std::span<const int32_t> found,
                     std::span<const Sampled> speculative, const PassResult& rest) {
  PassResult result;
  const std::optional<std::vector<int32_t>> samples = SamplesOf(pass);
  PACE_CHECK(samples.has_value(), "samples in the order of chunks");
  auto other = rest.samples.begin();
  for (size_t c = 0; c < pass.chunks.size(); ++c) {
    if ((*samples)[c] == kNone) continue;
    result.samples.push_back(found[c] == kNone ? *other++
                                               : speculative[static_cast<size_t>(found[c])]);
  }
  return result;
}

}  // namespace pace
