"""SentencePiece-style tokenizers beside the Python package `tokenizers`.

Random tokenizer.json files in the shapes that Llama 2, TinyLlama and their
relatives use, random texts and ids: the same ids, the same texts.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

try:
    import tokenizers
    REASON = ""
except ImportError:
    REASON = "NOT CHECKED: Python cannot import tokenizers"
    print(REASON, file=sys.stderr)

SOURCE = pathlib.Path(os.environ.get("PACE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PACE = pathlib.Path(os.environ.get("PACE_BINARY_DIR", SOURCE / "build")) / "pace"

SPACE = "\u2581"
NUM_FILES = 60
NUM_TEXTS = 60

TO_MARKS = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
TO_SPACES = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
PREPEND = {"type": "Prepend", "prepend": SPACE}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def sequence(kind, *parts):
    return {"type": "Sequence", kind: list(parts)}


def metaspace(scheme, split=True):
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split}


LLAMA = {
    "normalizer": sequence("normalizers", PREPEND, TO_MARKS),
    "decoder": sequence("decoders", TO_SPACES, {"type": "ByteFallback"}, {"type": "Fuse"}, STRIP),
}
# What files of this kind are made of; each is drawn with the others at random.
NORMALIZERS = [
    None, LLAMA["normalizer"], TO_MARKS, PREPEND,
    sequence("normalizers", {"type": "NFKC"}, PREPEND, TO_MARKS),
    sequence("normalizers", {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
             TO_MARKS),
]
PRE_TOKENIZERS = [None, metaspace("always"), metaspace("first"), metaspace("never"),
                  metaspace("always", False), metaspace("first", False),
                  sequence("pretokenizers", {"type": "Digits", "individual_digits": True},
                           metaspace("always"))]
DECODERS = [
    None, LLAMA["decoder"], metaspace("always"), metaspace("first"), metaspace("never"),
    sequence("decoders", TO_SPACES, {"type": "ByteFallback"}, {"type": "Fuse"}),
    sequence("decoders", {"type": "ByteFallback"}, {"type": "Fuse"}, {**STRIP, "start": 3}),
    sequence("decoders", TO_SPACES, {"type": "Fuse"}, STRIP),
    {"type": "ByteFallback"}, {"type": "Fuse"},
]


def random_model(rng):
    """A BPE model whose merges are drawn, not learned."""
    alphabet = [SPACE, " ", *"abcde01.,", "\u00e9", "\u4e2d", "\ufffd"]
    tokens = list(alphabet)
    merges = []
    while len(merges) < 60:
        left, right = rng.choice(tokens), rng.choice(tokens)
        if len(left + right) > 6 or [left, right] in merges:
            continue
        merges.append([left, right])
        if left + right not in tokens:
            tokens.append(left + right)
    bytes_left_out = rng.sample(range(256), rng.choice([0, 0, 40, 256]))
    tokens += [f"<0x{byte:02X}>" for byte in range(256) if byte not in bytes_left_out]
    rng.shuffle(tokens)
    tokens = ["<unk>", "<s>", "</s>", *tokens]
    return {"type": "BPE", "dropout": None, "unk_token": rng.choice(["<unk>", "<unk>", None]),
            "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": rng.random() < 0.5, "byte_fallback": rng.random() < 0.8,
            "ignore_merges": rng.random() < 0.1,
            "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}


def added(index, content, special, normalized):
    return {"id": index, "content": content, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": normalized, "special": special}


def random_file(rng, plain_llama):
    model = random_model(rng)
    size = len(model["vocab"])
    tokens = [added(0, "<unk>", True, False), added(1, "<s>", True, False),
              added(2, "</s>", True, False)]
    if rng.random() < 0.5:
        tokens.append(added(size, "<x>", False, rng.random() < 0.5))
        tokens.append(added(size + 1, "x y", False, rng.random() < 0.5))
    parts = {"normalizer": rng.choice(NORMALIZERS), "pre_tokenizer": rng.choice(PRE_TOKENIZERS),
             "decoder": rng.choice(DECODERS)}
    if plain_llama:
        parts = {**LLAMA, "pre_tokenizer": None}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens,
            "post_processor": None, "model": model, **parts}


def random_text(rng):
    pieces = [*"abcde01.,     ", "x y", "  ", SPACE, "\u00e9", "e\u0301", "\u4e2d", "\u4e03",
              "\U0001f600", "\n", "<s>", "</s>", "<x>", "<unk>", "<0x0A>", "\ufffd", "\uff21"]
    return "".join(rng.choice(pieces) for _ in range(rng.choice([0, 1, 3, 10, 40, 200])))


def random_ids(rng, file):
    vocab = file["model"]["vocab"]
    some_bytes = [i for token, i in vocab.items() if token.startswith("<0x")] or [0]
    euro = [vocab.get(token, 0) for token in ("<0xE2>", "<0x82>", "<0xAC>")]
    ids = []
    for _ in range(rng.randrange(12)):
        kind = rng.random()
        if kind < 0.2:
            ids += euro
        elif kind < 0.4:
            ids.append(rng.choice(some_bytes))
        elif kind < 0.5:
            ids.append(rng.choice([0, 1, 2]))
        else:
            ids.append(rng.randrange(len(vocab) + 5))
    return ids


def pace(folder, key, values, *arguments):
    done = subprocess.run(
        [str(PACE), "tokenize", "--tokenizer", str(folder), *arguments],
        input="".join(json.dumps({key: value}) + "\n" for value in values), capture_output=True,
        text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    # Not splitlines: texts may hold other line ends.
    return [json.loads(line) for line in done.stdout.split("\n") if line]


@unittest.skipIf(REASON, REASON)
class SentencePiecePeerTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def compare(self, seed, plain_llama):
        rng = random.Random(seed)
        file = random_file(rng, plain_llama)
        (self.folder / "tokenizer.json").write_text(json.dumps(file))
        peer = tokenizers.Tokenizer.from_str(json.dumps(file))
        about = {key: file[key] for key in ("normalizer", "pre_tokenizer", "decoder")}
        texts = [random_text(rng) for _ in range(NUM_TEXTS)]
        for text, line in zip(texts, pace(self.folder, "text", texts), strict=True):
            expected = peer.encode(text, add_special_tokens=False).ids
            self.assertEqual(line["ids"], expected, f"seed {seed}: {text!a}: {about}")
        lists = [random_ids(rng, file) for _ in range(NUM_TEXTS)]
        for flag in ([], ["--skip-special"]):
            lines = pace(self.folder, "ids", lists, "--decode", *flag)
            for ids, line in zip(lists, lines, strict=True):
                expected = peer.decode(ids, skip_special_tokens=bool(flag))
                self.assertEqual(line["text"], expected, f"seed {seed}: {ids} {flag}: {about}")

    def test_the_shape_of_llama(self):
        for seed in range(NUM_FILES):
            self.compare(seed, plain_llama=True)

    def test_every_mixture(self):
        for seed in range(NUM_FILES):
            self.compare(1000 + seed, plain_llama=False)

    def test_the_package_refuses_what_we_refuse(self):
        for broken in ({"type": "Metaspace", "replacement": "ab"},
                       {"type": "Metaspace"},
                       {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "often"},
                       {"type": "Metaspace", "replacement": SPACE, "add_prefix_space": False}):
            file = random_file(random.Random(1), plain_llama=True)
            file["pre_tokenizer"] = broken
            (self.folder / "tokenizer.json").write_text(json.dumps(file))
            with self.assertRaises(Exception):
                tokenizers.Tokenizer.from_str(json.dumps(file))
            with self.assertRaisesRegex(RuntimeError, "pre_tokenizer"):
                pace(self.folder, "text", ["a"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
