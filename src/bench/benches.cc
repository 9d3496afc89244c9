#include "bench/benches.h"

#include <algorithm>

namespace pace {
namespace {

constexpr Bench kBenches[] = {
    {"checkpoint",
     "writing and reading responses",
     {"--responses", "--tokens"},
     RunCheckpointBench},
    {"controller", "verdicts, events and the pool", {"--no-python"}, RunControllerBench},
    {"decode",
     "tokens per second of one device",
     {"--no-python", "--threads", "--device", "--shape", "--batch", "--context", "--reprefill",
      "--fp8"},
     RunDecodeBench},
    {"methods",
     "the step time of each method",
     {"--device", "--shape", "KEY=VALUE"},
     RunMethodBench},
    {"ranks", "two trainer ranks beside FSDP2", {"--no-python", "--model"}, RunRankBench},
    {"rollout",
     "generation and weight syncs",
     {"--no-python", "--threads", "--model"},
     RunRolloutBench},
    {"sandbox", "isolated programs per second", {}, RunSandboxBench},
    {"serve",
     "pace serve beside vLLM, and its client",
     {"--no-python", "--threads", "--model"},
     RunServeBench},
    {"tokenizer", "encoding", {"--no-python", "--tokenizer", "--texts"}, RunTokenizerBench},
    {"train",
     "training steps",
     {"--no-python", "--threads", "--model", "--device", "--shape", "--memory"},
     RunTrainBench},
};

}  // namespace

bool Bench::Takes(std::string_view flag) const {
  return flag == "--repetitions" || flag == "--json" ||
         std::ranges::find(flags, flag) != flags.end();
}

std::span<const Bench> Benches() {
  return kBenches;
}

const Bench* FindBench(std::string_view name) {
  const auto found = std::ranges::find(kBenches, name, &Bench::name);
  return found == std::end(kBenches) ? nullptr : found;
}

}  // namespace pace
