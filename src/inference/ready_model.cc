#include "inference/ready_model.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "inference/inference_options.h"
#include "model/devices.h"
#include "model/model_config_json.h"
#include "model/weight_set.h"
#include "terminal/terminal_text.h"

namespace pace {
namespace {

constexpr int64_t kDefaultKvBytes = int64_t{1} << 30;

Result<int64_t> NumCacheBlocks(const InferenceArguments& arguments, const ModelConfig& config,
                               Dtype dtype, int64_t num_sequences) {
  const int64_t block_bytes = BlockBytes(config, dtype);
  const int64_t per_sequence = (config.max_positions + kBlockTokens - 1) / kBlockTokens;
  const int64_t needed = per_sequence * num_sequences;
  if (arguments.kv_memory.empty()) {
    return std::clamp<int64_t>(kDefaultKvBytes / block_bytes, 1, needed);
  }
  PACE_ASSIGN_OR_RETURN(const int64_t bytes, ParseByteSize("--kv-memory", arguments.kv_memory));
  if (bytes < block_bytes) {
    return InvalidArgument("--kv-memory ", arguments.kv_memory, ": must be at least ", block_bytes,
                           " bytes, what ", kBlockTokens, " tokens take");
  }
  return std::min(bytes / block_bytes, needed);
}

}  // namespace

const Result<Tokenizer>& ModelTexts::tokenizer() {
  if (!tokenizer_.has_value()) tokenizer_ = Tokenizer::Load(folder_);
  return *tokenizer_;
}

const Result<ChatTemplate>& ModelTexts::chat_template() {
  if (!template_.has_value()) template_ = ChatTemplate::Load(folder_);
  return *template_;
}

Result<std::vector<TokenId>> ModelTexts::TokensOf(const PromptLine& line) {
  if (line.ids.has_value()) return *line.ids;
  if (!tokenizer().ok()) return tokenizer().status();
  if (line.text.has_value()) return tokenizer()->Encode(*line.text, /*add_special_tokens=*/true);
  if (!chat_template().ok()) return chat_template().status();
  ChatInputs inputs;
  inputs.messages = *line.messages;
  inputs.tools = line.tools;
  inputs.add_generation_prompt = true;
  inputs.extra = variables_;
  PACE_ASSIGN_OR_RETURN(const std::string rendered, chat_template()->Render(inputs));
  // The template writes out the tokens that begin a text.
  return tokenizer()->Encode(rendered, /*add_special_tokens=*/false);
}

Result<ReadyModel> LoadReadyModel(const InferenceArguments& arguments, int64_t num_sequences) {
  const Result<Dtype> dtype = ParseModelDtype(arguments.dtype);
  if (!dtype.ok() || *dtype == Dtype::kF16) {
    return InvalidArgument("--dtype ", arguments.dtype, ": must be f32 or bf16");
  }
  PACE_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(arguments.model));
  PACE_ASSIGN_OR_RETURN(const WeightSet weights, WeightSet::Load(config, arguments.model));
  PACE_RETURN_IF_ERROR(CheckFinite(weights).At(arguments.model));
  PACE_ASSIGN_OR_RETURN(const int64_t num_blocks,
                        NumCacheBlocks(arguments, config, *dtype, num_sequences));
  const int64_t num_cores = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  PACE_ASSIGN_OR_RETURN(const DeviceKind device, ParseDevice(arguments.device));
  PACE_ASSIGN_OR_RETURN(
      std::unique_ptr<Decoder> decoder,
      CreateDecoder(
          device, config,
          {.dtype = *dtype,
           .num_blocks = num_blocks,
           .num_threads = arguments.num_threads > 0 ? arguments.num_threads : num_cores}));
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> prepared, decoder->Prepare(weights));
  return ReadyModel{
      .config = std::move(config), .decoder = std::move(decoder), .weights = std::move(prepared)};
}

}  // namespace pace
