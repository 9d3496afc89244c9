// SpeculativePass: a prediction of the next forward pass, which a device executes before it is
// requested.
//
// While sequences continue, the next pass is known except for its tokens, which are already on
// the device: each row moves to the next position, after the token just sampled, with the next
// random number. When the real pass arrives, Find tells which of its chunks already ran: same
// sequence, same position, same preceding token, same sampling options. A mispredicted row wastes
// compute but is harmless: it only wrote past the end of its own sequence.
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
  // Predicts nothing.
  SpeculativePass() = default;
  // The prediction after `pass`: one row for each chunk with room for one more token. Empty if
  // some chunk does not end with a sample.
  explicit SpeculativePass(const Pass& pass);
  SpeculativePass(SpeculativePass&&) = default;
  SpeculativePass& operator=(SpeculativePass&&) = default;

  bool empty() const { return pass_.chunks.empty(); }
  // Tokens are 0 until SetTokens.
  const Pass& pass() const { return pass_; }
  // For each row, the chunk that it follows.
  std::span<const int32_t> sources() const { return sources_; }

  // The samples of the preceding pass, one for each chunk. The device does not run rows after
  // one of `stops`.
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

// The chunks that Find did not find, with their samples. REQUIRES: no scores; samples in the
// order of chunks, each of a chunk's last row (Find finds nothing in other passes)
Pass WithoutFound(const Pass& pass, std::span<const int32_t> found);
// The result of `pass`: `speculative` for the chunks that were found, `rest` for the others.
PassResult JoinFound(const Pass& pass, std::span<const int32_t> found,
                     std::span<const Sampled> speculative, const PassResult& rest);

}  // namespace pace

#endif  // PACE_MODEL_SPECULATIVE_PASS_H_
