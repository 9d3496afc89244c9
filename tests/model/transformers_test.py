"""Our networks beside transformers, on new checkpoints in both directions.

A random checkpoint that transformers writes is read by `pace-conformance models`
and must agree with what transformers computes from it; a checkpoint that we
write must load in transformers and give the same logits.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("PACE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("PACE_BINARY_DIR", SOURCE / "build"))

REASON = ""
if missing := [name for name in ("torch", "transformers", "safetensors")
               if importlib.util.find_spec(name) is None]:
    REASON = f"NOT CHECKED: Python cannot import {', '.join(missing)}"
    print(REASON, file=sys.stderr)
else:
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    import torch
    import transformers

    import expected

    torch.set_num_threads(1)

SHAPE = {"vocab_size": 97, "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "head_dim": 16}

# name: (class, what differs from SHAPE, stored dtype, how it is saved)
MODELS = {
    "llama with llama3 rope and all biases": (
        "Llama", {"attention_bias": True, "mlp_bias": True, "rope_parameters": LLAMA3},
        "float32", {}),
    "llama with linear rope, tied": (
        "Llama", {"rope_parameters": LINEAR, "tie_word_embeddings": True, "head_dim": 14,
                  "rms_norm_eps": 1e-5}, "float32", {}),
    "qwen2, one key head, sharded": (
        "Qwen2", {"num_key_value_heads": 1, "eos_token_id": [3, 4]}, "float32",
        {"max_shard_size": "20KB"}),
    "qwen3 with biases, tied": (
        "Qwen3", {"head_dim": 18, "attention_bias": True, "tie_word_embeddings": True,
                  "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
        "float32", {}),
    "qwen3 in bfloat16 with a padding token": (
        "Qwen3", {"head_dim": 16, "pad_token_id": 5}, "bfloat16", {}),
    "qwen3_moe, weights as they are, dense layers": (
        "Qwen3Moe", {**EXPERTS, "num_hidden_layers": 4, "decoder_sparse_step": 2,
                     "mlp_only_layers": [3]}, "float32", {}),
    "qwen3_moe, weights normed": (
        "Qwen3Moe", {**EXPERTS, "norm_topk_prob": True, "num_experts_per_tok": 3,
                     "tie_word_embeddings": True}, "bfloat16", {}),
    "qwen3_moe with stacked experts": (
        "Qwen3Moe", {**EXPERTS, "norm_topk_prob": True, "rope_parameters": LLAMA3}, "float32",
        {"save_original_format": False}),
}


def randomized(name, keys, dtype, seed):
    """A model whose logits spread: norms around 1, matrices by their width."""
    torch.manual_seed(seed)
    config = getattr(transformers, f"{name}Config")(**{**SHAPE, **keys})
    model = getattr(transformers, f"{name}ForCausalLM")(config)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            if parameter_name.endswith("norm.weight"):
                parameter.copy_(1 + 0.3 * noise)
            elif parameter.dim() == 1:
                parameter.copy_(0.3 * noise)
            elif "embed" in parameter_name:
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(1.2 * noise / parameter.shape[-1]**0.5)
    return model.to(getattr(torch, dtype))


def sequences():
    def draw(length):
        return torch.randint(SHAPE["vocab_size"], (length,)).tolist()

    return {"one": draw(1), "seven": draw(7), "padding inside": [5, 7, 5, 5, 11, 5],
            "long": draw(70)}


@unittest.skipIf(REASON, REASON)
class TransformersTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def saved(self, title, seed=0):
        name, keys, dtype, options = MODELS[title]
        folder = self.scratch / f"{title.replace(' ', '_')}-{seed}"
        randomized(name, keys, dtype, seed).save_pretrained(folder, **options)
        return folder, getattr(torch, dtype)

    def with_expected(self, title):
        """A checkpoint whose choices are clear enough to be compared exactly."""
        name, keys, dtype, _ = MODELS[title]
        for seed in range(200):
            model = randomized(name, keys, dtype, seed).float().eval()
            if expected.choices_are_clear(model, ids := sequences()):
                folder, stored = self.saved(title, seed)
                fields = expected.compute(folder, ids, stored, bfloat16=stored != torch.float32)
                expected.write(folder, fields)
                return folder
        self.fail(f"{title}: no seed gives clear choices")

    def conformance(self, *arguments):
        done = subprocess.run([BUILD / "pace-conformance", "models", *map(str, arguments)],
                              capture_output=True, text=True, check=False)
        print(done.stderr.strip(), done.stdout.strip(), sep="\n", file=sys.stderr)
        return done

    def test_new_checkpoints_of_transformers_agree(self):
        for title in MODELS:
            with self.subTest(title):
                done = self.conformance(self.with_expected(title))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"^[1-9]\d+ passed, 0 failed, 0 skipped\n$")

    def test_a_wrong_value_is_found_and_named(self):
        folder = self.with_expected("qwen3_moe, weights normed")
        fields = json.loads((folder / "expected.json").read_text())
        case = fields["cases"][1]
        case["log_probs"][3] += 2e-4
        case["greedy"][2] = (case["greedy"][2] + 1) % SHAPE["vocab_size"]
        case["router"]["layers"][1]["selected_experts"][4].reverse()
        case["grad_norms"]["model.layers.1.self_attn.q_norm.weight"] *= 1.001
        case["something"] = 1
        expected.write(folder, fields)
        done = self.conformance(folder)
        self.assertEqual(done.returncode, 1)
        lines = done.stdout.splitlines()
        for part in ("seven: log_probs: 3: ours", "seven: greedy: 2: ours",
                     "seven: layer 1: router.selected_experts: token 4, 0: ours",
                     "seven: grad_norms: model.layers.1.self_attn.q_norm.weight: ours",
                     "seven: decoder.log_probs: 3: ours", "seven: decoder.greedy: 2: ours"):
            self.assertTrue(any(part in line for line in lines), f"{part}: {done.stdout}")
        self.assertTrue(lines[-1].endswith("6 failed, 1 skipped"), lines[-1])

    def rewritten(self, folder, dtype, max_shard_bytes):
        out = folder.with_name(f"{folder.name}-{dtype}-{max_shard_bytes}")
        subprocess.run([BUILD / "model_roundtrip", folder, out, dtype, str(max_shard_bytes)],
                       check=True)
        return out

    def test_our_checkpoints_load_in_transformers(self):
        ids = torch.tensor([[1, 7, 3, 50, 7, 22, 9]])
        for title in MODELS:
            folder, _ = self.saved(title)
            original = expected.load(folder, torch.float32)
            for dtype, torch_dtype, shard in (("F32", torch.float32, 1 << 30),
                                              ("F16", torch.float16, 1 << 30),
                                              ("BF16", torch.bfloat16, 10_000)):
                with self.subTest(title, dtype=dtype):
                    ours = self.rewritten(folder, dtype, shard)
                    self.assertEqual((ours / "model.safetensors.index.json").exists(),
                                     shard < 1 << 30)
                    self.assert_same_model(ours, original, torch_dtype, ids)

    def assert_same_model(self, folder, original, dtype, ids):
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype="auto", attn_implementation="eager", output_loading_info=True)
        self.assertFalse(report["missing_keys"] or report["unexpected_keys"], report)
        self.assertEqual(model.dtype, dtype)
        self.assertEqual(model.generation_config.eos_token_id,
                         original.generation_config.eos_token_id)
        rounded = {name: value.to(dtype).float() for name, value in original.state_dict().items()}
        for name, value in model.float().state_dict().items():
            self.assertTrue(torch.equal(value, rounded[name]), name)
        for key in ("rope_parameters", "head_dim", "num_key_value_heads", "rms_norm_eps",
                    "attention_bias", "mlp_bias", "pad_token_id", "tie_word_embeddings",
                    "norm_topk_prob", "mlp_only_layers", "decoder_sparse_step"):
            if hasattr(original.config, key):
                self.assertEqual(getattr(model.config, key), getattr(original.config, key), key)
        if dtype == torch.float32:
            with torch.no_grad():
                self.assertTrue(torch.equal(model(ids).logits, original(ids).logits))


if __name__ == "__main__":
    unittest.main()
