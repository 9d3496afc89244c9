"""The peer of `pace bench decode`: generation with `transformers`.

One JSON request per line, one JSON answer per line:

  {"config": {...}, "device": "cuda", "threads": 2}
  {"batch": 128, "context": 512, "new_tokens": 16}

A configuration is followed by as many measurements as wanted. Random weights in
bfloat16; generate() with its default cache and attention, as its users run it.
The answer is the time of the tokens behind the first, which comes with the
context.
"""

import json
import sys
import time

import torch
import transformers

transformers.logging.set_verbosity_error()


def load(request):
    torch.set_num_threads(request["threads"])
    config = transformers.Qwen3Config(**request["config"])
    with torch.device(request["device"]):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    model.generation_config.eos_token_id = None
    model.generation_config.pad_token_id = 0
    return model


def synchronize(model):
    if model.device.type == "cuda":
        torch.cuda.synchronize()


def seconds(model, ids, new_tokens):
    synchronize(model)
    start = time.perf_counter()
    with torch.inference_mode():
        model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True,
                       top_k=0, max_new_tokens=new_tokens)
    synchronize(model)
    return time.perf_counter() - start


def measure(model, request):
    shape = (request["batch"], request["context"])
    ids = torch.randint(model.config.vocab_size, shape, device=model.device)
    first = seconds(model, ids, 1)
    return {"seconds": seconds(model, ids, 1 + request["new_tokens"]) - first}


def main():
    model = None
    for line in sys.stdin:
        request = json.loads(line)
        if "config" in request:
            model = None
            model = load(request)
            answer = {"version": f"transformers {transformers.__version__}, torch {torch.__version__}"}
        else:
            answer = measure(model, request)
        print(json.dumps(answer), flush=True)


main()
