// Responses to the prompts of a file or of stdin, JSON Lines in and out.
//
// All prompts at hand are generated together; lines come out in the order of
// their prompts, each as soon as those before it are out. A bad line ends the
// reading; what came before it is still answered.
#ifndef PACE_INFERENCE_GENERATE_LINES_H_
#define PACE_INFERENCE_GENERATE_LINES_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "inference/inference_options.h"
#include "inference/ready_model.h"
#include "rollout/engine_core.h"
#include "rollout/request.h"
#include "terminal/line_input.h"

namespace pace {

inline constexpr int64_t kDefaultMaxTokens = 512;

// A request for one prompt, number `index` of this run. Errors: a prompt that is
// empty, or does not fit into the model's positions together with max_tokens.
Result<GroupRequest> RequestFor(const GenerationOptions& options, const ModelConfig& config,
                                bool has_tokenizer, int64_t index, std::vector<TokenId> prompt);

// An engine over a model that is ready, at its first version.
Result<std::unique_ptr<EngineCore>> EngineFor(ReadyModel model, std::optional<Tokenizer> tokenizer,
                                              int64_t max_running);

class LineGenerator {
 public:
  // Borrows all of them.
  LineGenerator(const GenerationOptions& options, ModelTexts& texts, LineInput& input,
                EngineCore& engine)
      : options_(options), texts_(texts), input_(input), engine_(engine) {}

  Status Run();
  int64_t num_responses() const { return num_finished_; }
  int64_t num_tokens() const { return num_tokens_; }

 private:
  // Responses to one prompt, as lines, where they are finished.
  using Answers = std::vector<std::optional<std::string>>;

  // False at the end of input.
  Result<bool> ReadAhead();
  Status Submit(std::string_view line);
  std::string LineOf(const FinishedResponse& finished);
  Status Print();

  const GenerationOptions& options_;
  ModelTexts& texts_;
  LineInput& input_;
  EngineCore& engine_;
  std::deque<Answers> waiting_;  // of prompts first_waiting_, ...
  int64_t first_waiting_ = 0;
  int64_t num_finished_ = 0;
  int64_t num_tokens_ = 0;
};

}  // namespace pace

#endif  // PACE_INFERENCE_GENERATE_LINES_H_
