"""The peer of `pace bench train`: a plain training loop with `transformers`.

One JSON request per line, one JSON answer per line:

  {"load": DIR, "threads": 2, "token_budget": 4096, "learning_rate": 1e-6, ...,
   "sequences": [{"tokens", "num_prompt_tokens", "rollout_logprobs", "group", "reward"}, ...]}
  {"step": "plain", "measure_memory": false}

A step is one update of GRPO with PPO's clipped loss, token-mean, as its users
write it: padded micro-batches with an attention mask, scaled dot-product
attention, log-softmax over the logits, gradients accumulated and clipped,
fused AdamW, all in float32. "plain" takes sequences in the order in which
they came; "sorted" by length, so that less is padding; "single" one at a time,
so that nothing is. Each has weights of its own.
"""

import ctypes
import gc
import json
import sys
import time

import torch
import transformers

transformers.logging.set_verbosity_error()
CLIP = 0.2
ORDERS = ("plain", "sorted", "single")


class Loop:
    """A model, its optimizer and the micro-batches of its step."""

    def __init__(self, request, sequences, token_budget):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            request["load"], dtype=torch.float32, attn_implementation="sdpa").train()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=request["learning_rate"], betas=tuple(request["betas"]),
            eps=request["epsilon"], weight_decay=request["weight_decay"], fused=True)
        self.max_grad_norm = request["max_grad_norm"]
        self.micro_batches = pad(split(sequences, token_budget))
        self.num_tokens = sum(len(s["rollout_logprobs"]) for s in sequences)

    def step(self):
        loss_sum = 0.0
        for ids, mask, targets, old, advantages in self.micro_batches:
            logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            logprobs = torch.log_softmax(logits[:, :-1], dim=-1)
            logprobs = logprobs.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
            ratio = torch.exp(logprobs - old)
            clipped = torch.clamp(ratio, 1 - CLIP, 1 + CLIP)
            terms = -torch.min(ratio * advantages, clipped * advantages)
            loss = (terms * targets).sum() / self.num_tokens
            loss.backward()
            loss_sum += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss_sum, norm.item()

    def padding_share(self):
        padded = sum(ids.numel() for ids, *_ in self.micro_batches)
        real = sum(int(mask.sum()) for _, mask, *_ in self.micro_batches)
        return 1 - real / padded


def split(sequences, token_budget):
    """Micro-batches of as many sequences, in order, as the budget holds when padded."""
    batches = [[]]
    longest = 0
    for sequence in sequences:
        longest = max(longest, len(sequence["tokens"]))
        if batches[-1] and longest * (len(batches[-1]) + 1) > token_budget:
            batches.append([])
            longest = len(sequence["tokens"])
        batches[-1].append(sequence)
    return batches


def pad(batches):
    padded = []
    for batch in batches:
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
        padded.append((ids, mask, targets, old, advantages))
    return padded


def add_advantages(sequences):
    """GRPO: rewards standardised within their group."""
    for sequence in sequences:
        rewards = torch.tensor(
            [s["reward"] for s in sequences if s["group"] == sequence["group"]], dtype=torch.double)
        centred = sequence["reward"] - rewards.mean()
        sequence["advantage"] = float(centred / (rewards.std() + 1e-6))


def memory(field):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field))


class PeakMemory:
    """Bytes that a step needs above what is there between steps, where the kernel tells."""

    def __init__(self, wanted):
        self.before = None
        if not wanted:
            return
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        try:
            with open("/proc/self/clear_refs", "w") as clear:
                clear.write("5")
            self.before = memory("VmRSS")
        except OSError:
            pass

    def bytes(self):
        return max(0, memory("VmHWM") - self.before)


def load(request):
    torch.set_num_threads(request["threads"])
    sequences = request["sequences"]
    budget = request["token_budget"]
    add_advantages(sequences)
    by_length = sorted(sequences, key=lambda s: len(s["tokens"]))
    return {"plain": Loop(request, sequences, budget), "sorted": Loop(request, by_length, budget),
            "single": Loop(request, sequences, 1)}


def main():
    loops = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "load" in request:
            loops = load(request)
            answer = {"version": f"transformers {transformers.__version__}, torch {torch.__version__}",
                      "padding": [loops[order].padding_share() for order in ORDERS]}
        else:
            peak = PeakMemory(request["measure_memory"])
            start = time.perf_counter()
            loss, norm = loops[request["step"]].step()
            seconds = time.perf_counter() - start
            answer = {"seconds": seconds, "loss": loss, "grad_norm": norm}
            if peak.before is not None:
                answer["peak_bytes"] = peak.bytes()
        print(json.dumps(answer), flush=True)


main()
