#include "conformance/kinds.h"

namespace pace {

std::span<const ConformanceKind> TorchFreeKinds() {
  static constexpr ConformanceKind kKinds[] = {
      {"admission", "Verdicts of recorded traces",
       "X.trace.jsonl files, X.json and X.expected.jsonl beside them", CheckAdmission},
      {"tokenizers", "Encoding, decoding and stream decoding", "cases.json files", CheckTokenizers},
      {"chat", "Chat templates", "chat_cases.json files", CheckChat},
      {"hermes", "Tool calls in a model's text", "Case files", CheckHermes},
      {"truncation", "Tool responses cut to a length", "Case files", CheckTruncation},
      {"safetensors", "Reading and refusing safetensors files", "Folders", CheckSafetensors},
      {"numerics", "Advantages, losses, corrections and optimizer steps",
       "Case files, each named after its family", CheckNumerics},
      {"dapo", "Verdicts and scores of DAPO's verifier", "Case files", CheckDapo},
      {"equivalence", "Answers that say the same", "Case files", CheckEquivalence},
  };
  return kKinds;
}

}  // namespace pace
