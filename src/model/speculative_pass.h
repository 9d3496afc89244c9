// SpeculativePass: the pass that probably follows a pass, so that a device can begin it
// before anybody asks.
//
// While sequences just go on, the next pass is known but for its tokens, and these
// the device has: each row moves one place, behind the token just sampled, with the
// next random number. When a pass then comes, Find says which of its chunks were
// run: the same sequence at the same place, behind the same token, asked in the same
// way. A row that nobody asks for is wasted and does no harm: it wrote where its
// sequence would have gone on, a place that nobody reads.
// Thread-safety: none.
#ifndef PACE_MODEL_SPECULATIVE_PASS_H_
#define PACE_MODEL_SPECULATIVE_PASS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder.h"

namespace pace {

class SpeculativePass {
 public:
  // Nothing is ahead.
  SpeculativePass() = default;
  // What probably follows `pass`: one row for each of its chunks with room for one more
  // token. Nothing, where some chunk does not end with a sample.
  explicit SpeculativePass(const Pass& pass);
  SpeculativePass(SpeculativePass&&) = default;
  SpeculativePass& operator=(SpeculativePass&&) = default;

  bool empty() const { return pass_.chunks.empty(); }
  // Tokens are 0 until SetTokens.
  const Pass& pass() const { return pass_; }
  // For each row, the chunk that it follows.
  std::span<const int32_t> sources() const { return sources_; }

  // What the pass before sampled, a token for each chunk. Behind one of `stops`
  // a row has not been run.
  void SetTokens(std::span<const Sampled> sampled, std::span<const TokenId> stops);
  // For each chunk of `pass` the row that ran it, or -1.
  std::vector<int32_t> Find(const Pass& pass) const;

 private:
  bool IsRow(size_t row, const Pass& pass, size_t chunk) const;

  Pass pass_;
  std::vector<BlockId> blocks_;  // what the chunks of pass_ name
  std::vector<int32_t> sources_;
  std::vector<bool> stopped_;
};

// The chunks alone that Find did not find, with their samples. REQUIRES: no scores;
// samples in the order of chunks, each behind a chunk's last row (where there are
// others, Find finds nothing)
Pass WithoutFound(const Pass& pass, std::span<const int32_t> found);
// The answers to `pass`: of what was found those of the row ahead, then the rest's.
PassResult JoinFound(const Pass& pass, std::span<const int32_t> found,
                     std::span<const Sampled> ahead, const PassResult& rest);

}  // namespace pace

#endif  // PACE_MODEL_SPECULATIVE_PASS_H_
