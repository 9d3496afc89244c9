"""stories260K, read and computed by hand: what the commands are held against.

Everything here is written from llama2.c's file format and definition, without a
library and without a look at our own code.
"""

import math
import pathlib
import struct

import pace_process
import shared_data

WEIGHTS = shared_data.FOLDER / "weights"
MODEL = WEIGHTS / "stories260K.bin"
TOKENIZER = WEIGHTS / "tok512.bin"
BOS, EOS, SPACE_AND_BYTES = 1, 2, 3


def missing():
    """Why the tests that need the files cannot run, or nothing."""
    return shared_data.missing(1, MODEL, TOKENIZER)


def import_into(folder):
    """The model as a Hugging Face folder."""
    target = pathlib.Path(folder) / "stories"
    done = pace_process.run("import", MODEL, "--tokenizer", TOKENIZER, "--to", target)
    assert done.returncode == 0, done.stderr
    return target


class Vocabulary:
    def __init__(self):
        data = TOKENIZER.read_bytes()
        self.tokens, self.scores = [], []
        at = 4
        while at < len(data):
            score, length = struct.unpack_from("<fi", data, at)
            self.tokens.append(data[at + 8:at + 8 + length])
            self.scores.append(score)
            at += 8 + length
        self.ids = {token: i for i, token in enumerate(self.tokens)}

    def encode(self, text):
        """Ids with the begin token: characters or bytes, then the best pair."""
        ids = [BOS] + ([self.ids[b" "]] if text else [])
        for character in text:
            raw = character.encode()
            known = self.ids.get(raw)
            ids += [known] if known is not None else [SPACE_AND_BYTES + byte for byte in raw]
        while True:
            best = None
            for i in range(len(ids) - 1):
                joined = self.ids.get(self.tokens[ids[i]] + self.tokens[ids[i + 1]])
                if joined is not None and (best is None or self.scores[joined] > best[0]):
                    best = (self.scores[joined], i, joined)
            if best is None:
                return ids
            ids[best[1]:best[1] + 2] = [best[2]]

    def decode(self, ids):
        """The text of a response: byte tokens as bytes, the first space dropped."""
        raw = b""
        for i in ids:
            if i in (0, BOS, EOS):
                continue
            is_byte = SPACE_AND_BYTES <= i < SPACE_AND_BYTES + 256
            raw += bytes([i - SPACE_AND_BYTES]) if is_byte else self.tokens[i]
        return raw.decode().removeprefix(" ")


class Model:
    """The forward pass of one sequence, token by token."""

    def __init__(self):
        data = MODEL.read_bytes()
        (self.dim, self.hidden, self.layers, self.heads, self.kv_heads, self.vocab,
         self.positions) = struct.unpack_from("<7i", data)
        self.size = self.dim // self.heads
        kv = self.kv_heads * self.size
        self.at, self.data = 28, data
        self.embedding = self.matrix(self.vocab, self.dim)
        self.attention_norm = [self.row(self.dim) for _ in range(self.layers)]
        self.q = [self.matrix(self.dim, self.dim) for _ in range(self.layers)]
        self.k = [self.matrix(kv, self.dim) for _ in range(self.layers)]
        self.v = [self.matrix(kv, self.dim) for _ in range(self.layers)]
        self.o = [self.matrix(self.dim, self.dim) for _ in range(self.layers)]
        self.mlp_norm = [self.row(self.dim) for _ in range(self.layers)]
        self.gate = [self.matrix(self.hidden, self.dim) for _ in range(self.layers)]
        self.down = [self.matrix(self.dim, self.hidden) for _ in range(self.layers)]
        self.up = [self.matrix(self.hidden, self.dim) for _ in range(self.layers)]
        self.final_norm = self.row(self.dim)
        self.keys = [[] for _ in range(self.layers)]
        self.values = [[] for _ in range(self.layers)]

    def row(self, size):
        values = struct.unpack_from(f"<{size}f", self.data, self.at)
        self.at += 4 * size
        return values

    def matrix(self, rows, columns):
        return [self.row(columns) for _ in range(rows)]

    @staticmethod
    def multiply(matrix, x):
        return [sum(w * v for w, v in zip(row, x)) for row in matrix]

    @staticmethod
    def norm(x, weight):
        scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + 1e-5)
        return [w * v * scale for w, v in zip(weight, x)]

    def rotate(self, x, position):
        """Pairs of neighbours, as the file has them."""
        out = list(x)
        for i in range(0, len(x), 2):
            angle = position * 10000.0 ** (-(i % self.size) / self.size)
            c, s = math.cos(angle), math.sin(angle)
            out[i], out[i + 1] = x[i] * c - x[i + 1] * s, x[i] * s + x[i + 1] * c
        return out

    def attend(self, layer, q):
        out = []
        for head in range(self.heads):
            begin = head // (self.heads // self.kv_heads) * self.size
            part = slice(begin, begin + self.size)
            own = q[head * self.size:(head + 1) * self.size]
            scores = [sum(a * b for a, b in zip(own, key[part])) / math.sqrt(self.size)
                      for key in self.keys[layer]]
            top = max(scores)
            weights = [math.exp(score - top) for score in scores]
            total = sum(weights)
            out += [sum(w * value[begin + i] for w, value in zip(weights, self.values[layer]))
                    / total for i in range(self.size)]
        return out

    def feed(self, token):
        """The log-probabilities of what follows the token."""
        position = len(self.keys[0])
        x = list(self.embedding[token])
        for layer in range(self.layers):
            h = self.norm(x, self.attention_norm[layer])
            q = self.rotate(self.multiply(self.q[layer], h), position)
            self.keys[layer].append(self.rotate(self.multiply(self.k[layer], h), position))
            self.values[layer].append(self.multiply(self.v[layer], h))
            added = self.multiply(self.o[layer], self.attend(layer, q))
            x = [a + b for a, b in zip(x, added)]
            h = self.norm(x, self.mlp_norm[layer])
            gated = [g / (1 + math.exp(-g)) * u for g, u in zip(
                self.multiply(self.gate[layer], h), self.multiply(self.up[layer], h))]
            x = [a + b for a, b in zip(x, self.multiply(self.down[layer], gated))]
        logits = self.multiply(self.embedding, self.norm(x, self.final_norm))
        top = max(logits)
        total = top + math.log(sum(math.exp(logit - top) for logit in logits))
        return [logit - total for logit in logits]


def greedy(prompt, num_tokens):
    """The continuation of a prompt, with log-probabilities."""
    model = Model()
    for token in prompt:
        logprobs = model.feed(token)
    ids, chosen = [], []
    for _ in range(num_tokens):
        ids.append(max(range(len(logprobs)), key=logprobs.__getitem__))
        chosen.append(logprobs[ids[-1]])
        logprobs = model.feed(ids[-1])
    return ids, chosen


def score(ids):
    model = Model()
    return [model.feed(token)[target] for token, target in zip(ids, ids[1:])]
