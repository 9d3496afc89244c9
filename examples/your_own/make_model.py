# make_model.py
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed

alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
bytes_only = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
bytes_only.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
bytes_only.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_only, eos_token="<|im_end|>",
                                    pad_token="<|pad|>",
                                    additional_special_tokens=["<|im_start|>"])
tokenizer.chat_template = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
set_seed(1)
model = Qwen3ForCausalLM(Qwen3Config(
    vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=512,
    eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    bos_token_id=None, tie_word_embeddings=True))
model.generation_config.eos_token_id = tokenizer.eos_token_id
model.save_pretrained("my-model")
tokenizer.save_pretrained("my-model")
