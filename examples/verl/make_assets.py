"""A model, prompts and a reward for runs of verl: make_assets.py FOLDER TOKENIZER.

The model is a random Qwen3 of 4 layers whose end token is unlikely, so that responses have some 200
tokens and weight syncs interrupt them. The reward is the share of one digit: it varies within a
group. TOKENIZER is the folder of a model of this repository.
"""

import json
import pathlib
import random
import shutil
import sys

import pandas
import torch
import transformers

_HIDDEN, _END = 128, 1
_REWARD = '''
def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return solution_str.count(ground_truth) / max(1, len(solution_str))
'''


def make_model(folder, tokenizer):
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=18, hidden_size=_HIDDEN, intermediate_size=384, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=1024,
        rope_theta=10000.0, tie_word_embeddings=False, bos_token_id=None, eos_token_id=_END,
        pad_token_id=0)
    model = transformers.Qwen3ForCausalLM(config).float()
    with torch.no_grad():
        # Dimension 0 is the same everywhere and large after the last norm; only the end token reads
        # it, with a negative weight.
        model.model.embed_tokens.weight[:, 0] = 1.0
        model.lm_head.weight[:, 0] = 0.0
        model.lm_head.weight[_END, 0] = -0.4
    model.save_pretrained(folder)
    text = json.loads((tokenizer / "tokenizer.json").read_text())
    text["model"]["unk_token"] = "<pad>"    # verl tokenizes texts of its own while it starts
    (folder / "tokenizer.json").write_text(json.dumps(text))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "<eos>",
        "unk_token": "<pad>",
        "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"}))


def make_prompts(folder):
    rng, rows = random.Random(1), []
    for index in range(256):
        numbers = [str(rng.randrange(10)) for _ in range(rng.randint(2, 9))]
        rows.append({"data_source": "sums", "ability": "math",
                     "prompt": [{"role": "user", "content": "+".join(numbers) + "="}],
                     "reward_model": {"style": "rule", "ground_truth": numbers[0]},
                     "extra_info": {"index": index}})
    pandas.DataFrame(rows).to_parquet(folder / "train.parquet")
    pandas.DataFrame(rows[:4]).to_parquet(folder / "val.parquet")
    (folder / "reward.py").write_text(_REWARD.lstrip())


def main():
    folder, tokenizer = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "model").mkdir(parents=True)
    make_model(folder / "model", tokenizer)
    make_prompts(folder)


if __name__ == "__main__":
    main()
