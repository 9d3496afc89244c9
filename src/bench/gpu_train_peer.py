"""The peer of `pace bench train --device cuda`: training with `transformers`.

One JSON request per line, one JSON answer per line:

  {"config": {...}, "sequences": 8, "length": 2048}
  {"micro_batch": 8}

A configuration, then as many steps as wanted. Random weights in bfloat16, gradient
checkpointing by layer, torch's attention, the model's own loss over all tokens, clipped
gradients and fused AdamW: as its users run it. A micro-batch that does not fit is
halved; the answer says what was used.
"""

import gc
import json
import sys
import time

import torch
import transformers

transformers.logging.set_verbosity_error()


class Run:
    def __init__(self, request):
        config = transformers.Qwen3Config(**request["config"])
        with torch.device("cuda"):
            self.model = transformers.AutoModelForCausalLM.from_config(
                config, dtype=torch.bfloat16, attn_implementation="sdpa")
        self.model.train()
        self.model.config.use_cache = False
        self.model.gradient_checkpointing_enable({"use_reentrant": False})
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-6, fused=True)
        shape = (request["sequences"], request["length"])
        self.ids = torch.randint(config.vocab_size, shape, device="cuda")

    def step(self, micro_batch):
        torch.cuda.synchronize()
        start = time.perf_counter()
        parts = self.ids.split(micro_batch)
        for part in parts:
            loss = self.model(input_ids=part, labels=part).loss / len(parts)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        torch.cuda.synchronize()
        return time.perf_counter() - start


def main():
    run = None
    for line in sys.stdin:
        request = json.loads(line)
        if "config" in request:
            run = None
            gc.collect()
            torch.cuda.empty_cache()
            run = Run(request)
            answer = {"version": f"transformers {transformers.__version__}, "
                                 f"torch {torch.__version__}"}
        else:
            micro_batch = request["micro_batch"]
            while True:
                try:
                    seconds = run.step(micro_batch)
                    break
                except torch.OutOfMemoryError:
                    run.optimizer.zero_grad()
                    torch.cuda.empty_cache()
                    if micro_batch == 1:
                        raise
                    micro_batch //= 2
            answer = {"seconds": seconds, "micro_batch": micro_batch}
        print(json.dumps(answer), flush=True)


main()
