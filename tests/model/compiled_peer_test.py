"""The compiled peer of the GPU benchmarks computes what transformers computes."""

import importlib.util
import os
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("PACE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
SHAPE = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "max_position_embeddings": 64}

REASON = ""
if missing := [name for name in ("torch", "transformers")
               if importlib.util.find_spec(name) is None]:
    REASON = f"NOT CHECKED: Python cannot import {', '.join(missing)}"
    print(REASON, file=sys.stderr)
else:
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    import torch
    import transformers

    torch.set_num_threads(1)
    spec = importlib.util.spec_from_file_location("peer", SOURCE / "src/bench/compiled_peer.py")
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)


def request(tied, what):
    return {"config": SHAPE | {"tie_word_embeddings": tied}, "device": "cpu", "what": what,
            "compile": False, "sequences": 3, "length": 20}


def reference(model, tied):
    """A network of transformers with the same weights."""
    config = transformers.Qwen3Config(**SHAPE, tie_word_embeddings=tied, rope_parameters={
        "rope_type": "default", "rope_theta": peer.THETA})
    other = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    wide, narrow = (SHAPE[name] * SHAPE["head_dim"]
                    for name in ("num_attention_heads", "num_key_value_heads"))
    pairs = [(other.model.embed_tokens, model.embedding.weight), (other.model.norm, model.norm.weight),
             (other.lm_head, model.head.weight)]
    for theirs, ours in zip(other.model.layers, model.layers):
        attention, mlp = theirs.self_attn, theirs.mlp
        query, key, value = ours.qkv.weight.split((wide, narrow, narrow))
        gate, up = ours.gate_up.weight.chunk(2)
        pairs += [(attention.q_proj, query), (attention.k_proj, key), (attention.v_proj, value),
                  (attention.o_proj, ours.out.weight), (attention.q_norm, ours.query_norm.weight),
                  (attention.k_norm, ours.key_norm.weight), (mlp.gate_proj, gate), (mlp.up_proj, up),
                  (mlp.down_proj, ours.down.weight),
                  (theirs.input_layernorm, ours.input_norm.weight),
                  (theirs.post_attention_layernorm, ours.mlp_norm.weight)]
    for module, weight in pairs:
        module.weight.copy_(weight)
    return other


@unittest.skipIf(REASON, REASON)
class CompiledPeerTest(unittest.TestCase):
    def test_loss_and_cached_steps_are_those_of_transformers(self):
        for tied in (False, True):
            torch.manual_seed(1)
            training = peer.Training(request(tied, "train"))
            decoding = peer.Decoding(request(tied, "decode"))
            with torch.no_grad():
                for parameter in training.model.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
                other = reference(training.model, tied)
                ids = training.ids
                loss = training.loss(ids) / ids[:, 1:].numel()
                self.assertAlmostEqual(float(loss), float(other(input_ids=ids, labels=ids).loss), 5)
                decoding.model.load_state_dict(training.model.state_dict())
                logits = other(input_ids=ids).logits
                caches = [[torch.full((3, 2, 24, 16), 9.0) for _ in range(2)] for _ in range(2)]
                for place in range(ids.shape[1]):
                    _, step = decoding.step(ids[:, place], caches, torch.tensor([place]),
                                            torch.arange(24))
                    torch.testing.assert_close(step, logits[:, place], atol=2e-5, rtol=1e-4)

    def test_packed_sequences_are_those_alone(self):
        torch.manual_seed(2)
        packed = request(False, "train") | {"lengths": [9, 30, 1, 17, 12], "bin": 32}
        training = peer.Training(packed)
        self.assertEqual([one.inputs.shape[1] for one in training.bins], [32] * 3)
        ids = [torch.randint(97, (length + 1,)) for length in packed["lengths"]]
        training.fill(ids, packed["bin"])
        with torch.no_grad():
            together = sum(training.packed_loss(one) for one in training.bins)
            alone = sum(training.loss(one[None]) for one in ids)
        torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-5)
        first, second = (training.answer({"micro_batch": 1}) for _ in range(2))
        self.assertLess(second["loss"], first["loss"])

    def test_answers(self):
        training = peer.Training(request(False, "train"))
        first, second = (training.answer({"micro_batch": 2}) for _ in range(2))
        self.assertLess(second["loss"], first["loss"])
        self.assertGreater(first["seconds"], 0)
        decoding = peer.Decoding(request(True, "decode"))
        for batch in (1, 3, 3):
            answer = decoding.answer({"batch": batch, "context": 5, "new_tokens": 4})
            self.assertGreater(answer["seconds"], 0)


if __name__ == "__main__":
    unittest.main()
