#include "ranks/gpu_agreement.h"

#include <vector>

namespace pace {

Status AgreeOnGpus(Communicator& ranks, const Status& own, const std::string& library) {
  PACE_ASSIGN_OR_RETURN(const std::vector<std::string> said,
                        ranks.GatherBytes(own.ok() ? "+" + library : "-" + own.message()));
  for (size_t rank = 0; rank < said.size(); ++rank) {
    if (said[rank].starts_with('+')) continue;
    return Unavailable("policy.device = cuda: rank ", rank, " of ", said.size(), ": ",
                       said[rank].empty() ? "no answer" : said[rank].substr(1));
  }
  for (size_t rank = 1; rank < said.size(); ++rank) {
    if (said[rank] == said.front()) continue;
    return Unavailable("policy.device = cuda: rank ", rank, " of ", said.size(), " has ",
                       said[rank].substr(1), ", but rank 0 has ", said.front().substr(1),
                       " (use the same library on every rank)");
  }
  return Status::Ok();
}

}  // namespace pace
