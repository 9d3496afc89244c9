// `transformers` as the peer of the rollout benchmark: its generate(), in a
// process of its own that loads the weights once.
#ifndef PACE_BENCH_TRANSFORMERS_PEER_H_
#define PACE_BENCH_TRANSFORMERS_PEER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/peer_process.h"
#include "core/status.h"
#include "core/token_id.h"
#include "formats/dtype.h"

namespace pace {

using TokenRows = std::vector<std::vector<TokenId>>;

struct Generation {
  double seconds = 0;
  TokenRows ids;  // the new ones
};

class TransformersPeer {
 public:
  // Loads a Hugging Face folder in F32 and BF16.
  static Result<std::unique_ptr<TransformersPeer>> Start(const std::string& folder,
                                                         int64_t num_threads);

  Result<Generation> Generate(const TokenRows& prompts, int64_t new_tokens, Dtype dtype);
  // The machine's limit, as far as the peer's library reaches it.
  Result<double> GemmGigaflops(Dtype dtype);
  const std::string& version() const { return version_; }

 private:
  explicit TransformersPeer(PeerProcess process) : process_(std::move(process)) {}
  Status Load(const std::string& folder, int64_t num_threads, Dtype dtype);

  PeerProcess process_;
  std::string version_;
};

}  // namespace pace

#endif  // PACE_BENCH_TRANSFORMERS_PEER_H_
