// ReadyModel: a model folder made ready for inference on this machine.
// Thread-safety: none.
#ifndef PACE_INFERENCE_READY_MODEL_H_
#define PACE_INFERENCE_READY_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "inference/inference_options.h"
#include "inference/prompt_line.h"
#include "model/decoder.h"
#include "model/model_config.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

// The tokenizer and the chat template of a model folder, read when first asked
// for. A folder may lack both.
class ModelTexts {
 public:
  // `variables` are the template's, beside messages and tools.
  explicit ModelTexts(std::string folder, ValueDict variables = {})
      : folder_(std::move(folder)), variables_(std::move(variables)) {}

  const ValueDict& variables() const { return variables_; }
  // Errors: why there is none.
  const Result<Tokenizer>& tokenizer();
  const Result<ChatTemplate>& chat_template();

  // The tokens of a line.
  Result<std::vector<TokenId>> TokensOf(const PromptLine& line);

 private:
  const std::string folder_;
  const ValueDict variables_;
  std::optional<Result<Tokenizer>> tokenizer_;
  std::optional<Result<ChatTemplate>> template_;
};

struct ReadyModel {
  ModelConfig config;
  std::unique_ptr<Decoder> decoder;
  std::shared_ptr<const DecoderWeights> weights;
};

// Loads the weights and makes a KV cache for up to `num_sequences` sequences of
// the model's full length, within the memory that the arguments allow.
Result<ReadyModel> LoadReadyModel(const InferenceArguments& arguments, int64_t num_sequences);

}  // namespace pace

#endif  // PACE_INFERENCE_READY_MODEL_H_
