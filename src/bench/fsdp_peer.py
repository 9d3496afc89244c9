"""The peer of `pace bench ranks`: PyTorch's FSDP2 over gloo, with `transformers`.

One JSON request per line, one JSON answer per line, as train_peer.py; "threads" is the number of
ranks, with one thread each:

  {"load": DIR, "threads": 2, "token_budget": 1024, ..., "sequences": [...]}
  {"step": "plain"}

Each layer and the model are wrapped by `fully_shard`. Sequences are shared among the ranks, the
longest first and each to the rank with the fewest tokens; a rank sorts its own by length into
padded micro-batches. A step is one update of GRPO with PPO's clipped loss, token-mean.
"""

import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import transformers
from torch.distributed.fsdp import fully_shard

transformers.logging.set_verbosity_error()
CLIP = 0.2


def add_advantages(sequences):
    """GRPO: rewards standardised within their group."""
    for sequence in sequences:
        rewards = torch.tensor(
            [s["reward"] for s in sequences if s["group"] == sequence["group"]], dtype=torch.double)
        sequence["advantage"] = float((sequence["reward"] - rewards.mean()) / (rewards.std() + 1e-6))


def share(sequences, size):
    shares = [[] for _ in range(size)]
    for sequence in sorted(sequences, key=lambda s: -len(s["tokens"])):
        min(shares, key=lambda own: sum(len(s["tokens"]) for s in own)).append(sequence)
    return shares


def split(sequences, token_budget):
    """Micro-batches of as many sequences, by length, as the budget holds when padded."""
    batches = [[]]
    longest = 0
    for sequence in sorted(sequences, key=lambda s: len(s["tokens"])):
        longest = max(longest, len(sequence["tokens"]))
        if batches[-1] and longest * (len(batches[-1]) + 1) > token_budget:
            batches.append([])
            longest = len(sequence["tokens"])
        batches[-1].append(sequence)
    return batches


def pad(batch):
    shape = (len(batch), max(len(s["tokens"]) for s in batch))
    ids = torch.zeros(shape, dtype=torch.long)
    mask = torch.zeros(shape, dtype=torch.long)
    targets, old, advantages = (torch.zeros(shape[0], shape[1] - 1) for _ in range(3))
    for row, s in enumerate(batch):
        begin, end = s["num_prompt_tokens"] - 1, len(s["tokens"]) - 1
        ids[row, :end + 1] = torch.tensor(s["tokens"])
        mask[row, :end + 1] = 1
        targets[row, begin:end] = 1
        old[row, begin:end] = torch.tensor(s["rollout_logprobs"])
        advantages[row, begin:end] = s["advantage"]
    return ids, mask, targets, old, advantages


class Loop:
    def __init__(self, request, rank):
        size = request["threads"]
        self.size = size
        model = transformers.AutoModelForCausalLM.from_pretrained(
            request["load"], dtype=torch.float32, attn_implementation="sdpa").train()
        mesh = torch.distributed.init_device_mesh("cpu", (size,))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        self.model = model
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=request["learning_rate"], betas=tuple(request["betas"]),
            eps=request["epsilon"], weight_decay=request["weight_decay"])
        self.max_grad_norm = request["max_grad_norm"]
        sequences = request["sequences"]
        add_advantages(sequences)
        self.num_tokens = sum(len(s["rollout_logprobs"]) for s in sequences)
        of_ranks = [split(own, request["token_budget"]) for own in share(sequences, size)]
        self.micro_batches = [pad(batch) for batch in of_ranks[rank]]
        # Every rank runs as many passes; the last one is repeated without weight.
        while len(self.micro_batches) < max(len(batches) for batches in of_ranks):
            ids, mask, targets, old, advantages = self.micro_batches[-1]
            self.micro_batches.append((ids, mask, torch.zeros_like(targets), old, advantages))

    def step(self):
        loss_sum = torch.zeros(1)
        for ids, mask, targets, old, advantages in self.micro_batches:
            logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            logprobs = torch.log_softmax(logits[:, :-1], dim=-1)
            logprobs = logprobs.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
            ratio = torch.exp(logprobs - old)
            clipped = torch.clamp(ratio, 1 - CLIP, 1 + CLIP)
            terms = -torch.min(ratio * advantages, clipped * advantages)
            loss = (terms * targets).sum() / self.num_tokens
            # Gradients are averaged over the ranks.
            (loss * self.size).backward()
            loss_sum += loss.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        dist.all_reduce(loss_sum)
        return loss_sum.item(), norm.full_tensor().item()


def join(rank, size, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=size)


def follow(rank, request, port):
    join(rank, request["threads"], port)
    loop = Loop(request, rank)
    while True:
        order = [None]
        dist.broadcast_object_list(order, src=0)
        if order[0] is None:
            return
        loop.step()


def start(request):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    for rank in range(1, request["threads"]):
        if os.fork() == 0:
            try:
                follow(rank, request, port)
            finally:
                os._exit(0)
    join(0, request["threads"], port)
    return Loop(request, 0)


def main():
    loop = None
    for line in sys.stdin:
        request = json.loads(line)
        if "load" in request:
            loop = start(request)
            answer = {"version": f"FSDP2 of torch {torch.__version__}, "
                                 f"transformers {transformers.__version__}"}
        else:
            begin = time.perf_counter()
            dist.broadcast_object_list(["step"], src=0)
            loss, norm = loop.step()
            answer = {"seconds": time.perf_counter() - begin, "loss": loss, "grad_norm": norm}
        print(json.dumps(answer), flush=True)
    if loop is not None:
        dist.broadcast_object_list([None], src=0)


main()
