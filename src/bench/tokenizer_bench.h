// Encoding speed: `pace bench tokenizer`, beside the `tokenizers` package on one
// thread each, over the same texts in the same run.
#ifndef PACE_BENCH_TOKENIZER_BENCH_H_
#define PACE_BENCH_TOKENIZER_BENCH_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace pace {

struct TokenizerBenchOptions {
  std::string tokenizer{};  // the folder of tokenizer.json
  std::string texts{};      // a .jsonl file or a folder of them: every string in them is a text
  int64_t repetitions = 7;
  bool python = true;
};

// One JSON object on one line, as RunControllerBench.
Result<std::string> RunTokenizerBench(const TokenizerBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_TOKENIZER_BENCH_H_
