"""The peer of `pace bench train` and `pace bench decode` on a GPU: a plain Qwen3 in PyTorch,
compiled.

One JSON request per line, one JSON answer per line:

  {"config": {...}, "device": "cuda", "what": "train", "sequences": 8, "length": 2048}
  {"micro_batch": 8}
  {"config": {...}, "device": "cuda", "what": "train", "lengths": [900, 35, 4000], "bin": 16384}
  {"micro_batch": 1}
  {"config": {...}, "device": "cuda", "what": "decode"}
  {"batch": 128, "context": 512, "new_tokens": 16}

A configuration, then as many measurements of its kind as wanted. Training: bfloat16 autocast over
float32 weights, each layer compiled and checkpointed, the loss in compiled chunks of rows, clipped
gradients, fused AdamW; sequences of different lengths are packed into bins of one size and use
PyTorch's attention for packed sequences. Decoding: bfloat16 weights and a static cache; layers, and
head with sampling, compiled, and the step as a whole replayed as a CUDA graph. The time of
compilation is not part of "seconds". "compile": false disables it.
"""

import gc
import inspect
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn
from torch.utils.checkpoint import checkpoint

CHUNK_ROWS = 4096
THETA = 1e6
# Its arguments differ between versions.
VARLEN = inspect.signature(varlen_attn).parameters
CAUSAL = {"window_size": (-1, 0)} if "window_size" in VARLEN else {"is_causal": True}
if "enable_gqa" in VARLEN:
    CAUSAL["enable_gqa"] = True


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (wide * scale * self.weight).to(x.dtype)


def rotate(x, cosines, sines):
    low, high = x.chunk(2, dim=-1)
    return torch.cat((low * cosines - high * sines, high * cosines + low * sines), dim=-1)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, self.head_dim = config["hidden_size"], config["head_dim"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        both = self.heads + 2 * self.kv_heads
        self.input_norm, self.mlp_norm = Norm(width), Norm(width)
        self.query_norm, self.key_norm = Norm(self.head_dim), Norm(self.head_dim)
        self.qkv = nn.Linear(width, both * self.head_dim, bias=False)
        self.out = nn.Linear(self.heads * self.head_dim, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * config["intermediate_size"], bias=False)
        self.down = nn.Linear(config["intermediate_size"], width, bias=False)

    def forward(self, x, cosines, sines, cache=None, position=None, mask=None, bounds=None,
                longest=None):
        rows, length, _ = x.shape
        heads = self.qkv(self.input_norm(x)).view(rows, length, -1, self.head_dim).transpose(1, 2)
        query, key, value = heads.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        query = rotate(self.query_norm(query), cosines, sines).to(value.dtype)
        key = rotate(self.key_norm(key), cosines, sines).to(value.dtype)
        if cache is not None:
            # Written in place by the compiler, unlike index_copy_.
            cache[0][:, :, position] = key
            cache[1][:, :, position] = value
            key, value = cache[0], cache[1]
        if bounds is not None:
            attended = self.attend_packed(query, key, value, bounds, longest)
        elif mask is None:
            attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True,
                                                               enable_gqa=True)
        else:
            attended = self.attend_cached(query, key, value, mask)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, -1))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)

    def attend_packed(self, query, key, value, bounds, longest):
        """One row of sequences; `bounds` says where each begins, and the last ends."""
        rows = [x[0].transpose(0, 1) for x in (query, key, value)]
        if query.is_cuda:
            attended = varlen_attn(*rows, bounds, bounds, longest, longest, **CAUSAL)
        else:
            ends = bounds.unique().tolist()
            parts = [functional.scaled_dot_product_attention(
                *(x[:, :, begin:end] for x in (query, key, value)), is_causal=True,
                enable_gqa=True)[0].transpose(0, 1) for begin, end in zip(ends, ends[1:])]
            attended = torch.cat(parts)
        return attended.transpose(0, 1)[None]

    def attend_cached(self, query, key, value, mask):
        """One token; the heads that share keys are the rows of a product, which reads them once."""
        grouped = query.view(query.shape[0], self.kv_heads, -1, self.head_dim)
        scores = (grouped @ key.transpose(2, 3)).float() * self.head_dim ** -0.5
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1).to(value.dtype)
        return (weights @ value).view(query.shape)


class Qwen3(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = Norm(config["hidden_size"])
        self.head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config["tie_word_embeddings"]:
            self.head.weight = self.embedding.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def angles(self, positions):
        half = self.config["head_dim"] // 2
        steps = torch.arange(half, device=positions.device, dtype=torch.float32)
        angles = positions[:, None].float() * THETA ** (-steps / half)
        return angles.cos(), angles.sin()


def chunk_loss(rows, head, targets):
    return functional.cross_entropy((rows @ head.t().to(rows.dtype)).float(), targets,
                                    reduction="sum")


IGNORED = -100


class Bin:
    """Packed sequences in a row of fixed size; the rest of it is a sequence that does not count."""

    def __init__(self, ids, size, count, device):
        lengths = [len(one) - 1 for one in ids]
        rest = size - sum(lengths)
        self.inputs = torch.cat([one[:-1] for one in ids] + [ids[0].new_zeros(rest)])[None]
        self.targets = torch.cat([one[1:] for one in ids] + [ids[0].new_full((rest,), IGNORED)])
        ends = torch.tensor(lengths + [rest]).cumsum(0).tolist()
        self.bounds = torch.tensor([0] + ends + [size] * (count - len(lengths)),
                                   dtype=torch.int32, device=device)
        self.positions = torch.cat([torch.arange(n, device=device) for n in lengths + [rest]])
        self.longest = max(lengths + [rest])


def packed(lengths, size):
    """Which sequences share a bin: first fit, the longest first."""
    bins = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        for own in bins:
            if sum(lengths[i] for i in own) + lengths[index] <= size:
                own.append(index)
                break
        else:
            bins.append([index])
    return bins


class Training:
    """Steps over the same random sequences; the loss of each is a mean over all tokens."""

    def __init__(self, request):
        self.device = request["device"]
        compiled = torch.compile if request.get("compile", True) else lambda body: body
        with torch.device(self.device):
            self.model = Qwen3(request["config"])
        self.layers = [compiled(layer) for layer in self.model.layers]
        self.chunk_loss = compiled(chunk_loss)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-6,
                                           fused=self.device == "cuda")
        vocabulary = request["config"]["vocab_size"]
        if "lengths" in request:
            ids = [torch.randint(vocabulary, (length + 1,), device=self.device)
                   for length in request["lengths"]]
            self.fill(ids, request["bin"])
        else:
            shape = (request["sequences"], request["length"] + 1)
            self.ids = torch.randint(vocabulary, shape, device=self.device)
            self.bins = None
            self.tokens = shape[0] * (shape[1] - 1)

    def fill(self, ids, size):
        """Trains on sequences of these ids."""
        lengths = [len(one) - 1 for one in ids]
        groups = packed(lengths, size)
        count = max(len(own) for own in groups)
        self.bins = [Bin([ids[i] for i in own], size, count, self.device) for own in groups]
        # One number for all: another would be compiled again.
        longest = max(one.longest for one in self.bins)
        for one in self.bins:
            one.longest = longest
        self.tokens = sum(lengths)

    def loss(self, ids):
        """The summed loss of all tokens but the first of each sequence."""
        positions = torch.arange(ids.shape[1] - 1, device=self.device)
        return self.summed_loss(ids[:, :-1], ids[:, 1:].reshape(-1), positions)

    def packed_loss(self, one):
        return self.summed_loss(one.inputs, one.targets, one.positions, bounds=one.bounds,
                                longest=one.longest)

    def summed_loss(self, inputs, targets, positions, **packing):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            cosines, sines = self.model.angles(positions)
            x = self.model.embedding(inputs)
            if self.device == "cuda":
                x = x.bfloat16()
            for layer in self.layers:
                x = checkpoint(layer, x, cosines, sines, use_reentrant=False, **packing)
            rows = self.model.norm(x).flatten(0, 1)
            parts = zip(rows.split(CHUNK_ROWS), targets.split(CHUNK_ROWS))
            return sum(checkpoint(self.chunk_loss, part, self.model.head.weight, wanted,
                                  use_reentrant=False) for part, wanted in parts)

    def step(self, micro_batch):
        synchronize(self.device)
        start = time.perf_counter()
        total = 0
        for part in self.bins or self.ids.split(micro_batch):
            summed = self.packed_loss(part) if self.bins else self.loss(part)
            loss = summed / self.tokens
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        synchronize(self.device)
        return time.perf_counter() - start, float(total)

    def answer(self, request):
        micro_batch = request["micro_batch"]
        while True:
            try:
                seconds, loss = self.step(micro_batch)
                break
            except torch.OutOfMemoryError:
                self.optimizer.zero_grad()
                torch.cuda.empty_cache()
                if micro_batch == 1:
                    raise
                micro_batch //= 2
        return {"seconds": seconds, "micro_batch": micro_batch, "loss": loss,
                "gib": reserved(self.device)}


class Decoding:
    """Steps of one token, sampled at temperature 1."""

    def __init__(self, request):
        self.device = request["device"]
        compiled = torch.compile if request.get("compile", True) else lambda body: body
        self.dtype = torch.bfloat16 if self.device == "cuda" else torch.float32
        with torch.device(self.device):
            self.model = Qwen3(request["config"]).to(self.dtype)
        self.layers = [compiled(layer) for layer in self.model.layers]
        self.draw = compiled(self.draw_eagerly)
        self.steps = {}

    def step(self, ids, caches, position, places):
        """The next tokens, and the logits they were drawn from."""
        cosines, sines = self.model.angles(position)
        x = self.model.embedding(ids)[:, None]
        mask = (places <= position)[None, None, None, :]
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cosines, sines, cache, position, mask)
        return self.draw(x)

    def draw_eagerly(self, x):
        logits = self.model.head(self.model.norm(x))[:, 0].float()
        noise = torch.empty_like(logits).exponential_()
        return (logits.softmax(-1) / noise).argmax(-1), logits

    def made(self, batch, length):
        if (batch, length) in self.steps:
            return self.steps[batch, length]
        self.steps.clear()
        release(self.device)
        config, layer = self.model.config, self.model.layers[0]
        shape = (batch, layer.kv_heads, length, layer.head_dim)
        caches = [[torch.randn(shape, device=self.device, dtype=self.dtype) for _ in range(2)]
                  for _ in range(config["num_hidden_layers"])]
        ids = torch.zeros(batch, dtype=torch.long, device=self.device)
        position = torch.zeros(1, dtype=torch.long, device=self.device)
        places = torch.arange(length, device=self.device)

        def once():
            tokens, _ = self.step(ids, caches, position, places)
            ids.copy_(tokens)
            position.add_(1)

        if self.device == "cuda":
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    once()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                once()
            run = graph.replay
        else:
            run = once
        self.steps[batch, length] = (run, position)
        return self.steps[batch, length]

    @torch.inference_mode()
    def answer(self, request):
        run, position = self.made(request["batch"], request["context"] + request["new_tokens"] + 8)
        position.fill_(request["context"])
        synchronize(self.device)
        start = time.perf_counter()
        for _ in range(request["new_tokens"]):
            run()
        synchronize(self.device)
        return {"seconds": time.perf_counter() - start, "gib": reserved(self.device)}


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def release(device):
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def reserved(device):
    return torch.cuda.max_memory_reserved() / 2**30 if device == "cuda" else 0


def main():
    kinds = {"train": Training, "decode": Decoding}
    run = None
    for line in sys.stdin:
        request = json.loads(line)
        if "config" in request:
            run = None
            torch._dynamo.reset()
            release(request["device"])
            if request["device"] == "cuda":
                torch.cuda.reset_peak_memory_stats()
                torch.set_float32_matmul_precision("high")
            run = kinds[request["what"]](request)
            answer = {"version": f"torch {torch.__version__}, compiled"}
        else:
            answer = run.answer(request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
