#include "model/config_defaults.h"

#include <algorithm>

namespace pace {
namespace {

constexpr std::string_view kInertKeys[] = {
    // Of the configuration's base class, versions 4 and 5.
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path",
    "architectures", "auto_map", "attn_implementation", "chunk_size_feed_forward",
    "cross_attention_hidden_size", "custom_pipelines", "experts_implementation", "finetuning_task",
    "id2label", "initializer_range", "keys_to_ignore_at_inference", "label2id", "name_or_path",
    "num_labels", "output_attentions", "output_hidden_states", "prefix", "problem_type",
    "return_dict", "sep_token_id", "task_specific_params", "tie_encoder_decoder",
    "tie_last_hidden_states", "tokenizer_class", "torchscript", "transformers_version",
    "transformers.js_config", "unsloth_fixed", "unsloth_version", "use_bfloat16", "use_cache",
    // Of these architectures.
    "max_sequence_length", "max_window_layers", "output_router_logits", "router_aux_loss_coef",
    // Of generation, which old checkpoints keep here.
    "assistant_confidence_threshold", "assistant_lookbehind", "bad_words_ids",
    "begin_suppress_tokens", "decoder_start_token_id", "diversity_penalty", "do_sample",
    "early_stopping", "encoder_no_repeat_ngram_size", "encoder_repetition_penalty",
    "epsilon_cutoff", "eta_cutoff", "exponential_decay_length_penalty", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "max_length", "max_new_tokens", "min_length",
    "no_repeat_ngram_size", "num_assistant_tokens", "num_assistant_tokens_schedule",
    "num_beam_groups", "num_beams", "num_return_sequences", "output_scores",
    "remove_invalid_values", "repetition_penalty", "return_dict_in_generate", "suppress_tokens",
    "target_lookbehind", "temperature", "top_k", "top_p", "typical_p"};

ModelConfig Shape(Architecture architecture, int64_t vocab, int64_t hidden, int64_t intermediate,
                  int64_t layers, int64_t positions) {
  ModelConfig config;
  config.architecture = architecture;
  config.vocab_size = vocab;
  config.hidden_size = hidden;
  config.intermediate_size = intermediate;
  config.num_layers = layers;
  config.num_heads = 32;
  config.max_positions = positions;
  return config;
}

}  // namespace

ConfigDefaults DefaultsOf(Architecture architecture) {
  ConfigDefaults defaults;
  switch (architecture) {
    case Architecture::kLlama:
      defaults.config = Shape(architecture, 32000, 4096, 11008, 32, 2048);
      defaults.config.bos = 1;
      defaults.config.eos = {2};
      break;
    case Architecture::kQwen2:
      defaults.config = Shape(architecture, 151936, 4096, 22016, 32, 32768);
      defaults.config.qkv_bias = true;
      defaults.num_kv_heads = 32;
      break;
    case Architecture::kQwen3:
      defaults.config = Shape(architecture, 151936, 4096, 22016, 32, 32768);
      defaults.config.qk_norm = true;
      defaults.num_kv_heads = 32;
      defaults.head_dim = 128;
      break;
    case Architecture::kQwen3Moe:
      defaults.config = Shape(architecture, 151936, 2048, 6144, 24, 32768);
      defaults.config.qk_norm = true;
      defaults.num_kv_heads = 4;
      defaults.moe = {.num_experts = 128,
                      .num_experts_per_token = 8,
                      .intermediate_size = 768,
                      .normalize_weights = false,
                      .sparse_step = 1,
                      .dense_layers = {}};
      break;
  }
  return defaults;
}

bool IsInertConfigKey(std::string_view key) {
  return std::ranges::find(kInertKeys, key) != std::ranges::end(kInertKeys);
}

}  // namespace pace
