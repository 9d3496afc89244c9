"""The peer of `pace bench rollout`: generation with `transformers`.

One JSON request per line, one JSON answer per line:

  {"load": DIR, "dtype": "float32", "threads": 2}
  {"generate": [[ids], ...], "new_tokens": 128, "dtype": "float32"}
  {"gemm": [rows, inner, columns], "dtype": "bfloat16"}

It runs as its users run it: generate() with its default cache and attention,
greedy, never stopping early.
"""

import json
import sys
import time

import torch
import transformers

transformers.logging.set_verbosity_error()


def load(request):
    torch.set_num_threads(request["threads"])
    dtype = getattr(torch, request["dtype"])
    model = transformers.AutoModelForCausalLM.from_pretrained(request["load"], dtype=dtype).eval()
    # Greedy to the very end: the answer must not depend on what is generated.
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


def generate(model, request):
    ids = torch.tensor(request["generate"])
    mask = torch.ones_like(ids)
    start = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(input_ids=ids, attention_mask=mask, do_sample=False,
                             max_new_tokens=request["new_tokens"])
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "ids": out[:, ids.shape[1]:].tolist()}


def gemm(request):
    """The best of many products: the machine's limit, as far as this library reaches it."""
    rows, inner, columns = request["gemm"]
    dtype = getattr(torch, request["dtype"])
    a = torch.randn(rows, inner).to(dtype)
    b = torch.randn(inner, columns).to(dtype)
    best = float("inf")
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        start = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - start)
    return {"gflops": 2e-9 * rows * inner * columns / best}


def main():
    models = {}  # by dtype
    for line in sys.stdin:
        request = json.loads(line)
        if "load" in request:
            models[request["dtype"]] = load(request)
            answer = {"version": f"transformers {transformers.__version__}, torch {torch.__version__}"}
        elif "generate" in request:
            answer = generate(models[request["dtype"]], request)
        else:
            answer = gemm(request)
        print(json.dumps(answer), flush=True)


main()
