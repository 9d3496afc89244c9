"""Writes docs/performance.md from the results in results/bench.

    python3 scripts/performance_page.py > docs/performance.md
"""

import json
import pathlib
import sys

RESULTS = pathlib.Path(__file__).parents[1] / "results" / "bench"

HEAD = """# Performance

This page lists measured speeds on one GPU: decoding, training, and end-to-end steps of the
methods. It is for readers who want to know the cost of a run or where time is spent. Continue
with [gpu.md](gpu.md) for how the GPU is used, and with [results.md](results.md) for what the
methods learn. `scripts/performance_page.py` generates the page from `results/bench`. All values
are medians of the repetitions that each file lists.

## Decoding on a GPU

Random weights in bf16, all sequences at the same context length, sampling at temperature 1, host
time included. The *limit* is the time to read the weights and the KV cache once, at the measured
bandwidth of a large copy within the device. *Compiled* is a plain Qwen3 in PyTorch: one compiled
step with a static cache, captured as a CUDA graph. `transformers` is limited by its host code most
of the time, so its repetitions vary widely; the file lists all of them.
"""

NEXT = """
Remaining potential:

- *One sequence.* All layers run in one kernel, which reads weights ahead while its blocks wait for
  each other ([gpu.md](gpu.md#generation)). Of a layer of 0.6B (19 microseconds) reading takes 8; the
  rest are five exchanges between the blocks and sums that follow one another.
- *Many sequences.* The products of cuBLAS take two (4B) to six times (0.6B) as long as reading
  their weights.
"""


def values(report):
    return {m["name"]: m["value"] for m in report["measurements"]}


def decode_rows(report):
    found = values(report)
    for name in found:
        if f"{name}_share_of_bandwidth" not in found:
            continue
        shape, batch = name.split("_batch_")
        row = [shape, batch, f"{found[name]:,.0f}",
               f"{100 * found[f'{name}_share_of_bandwidth']:.0f} %"]
        for kind, digits in (("compiled", 2), ("transformers", 1)):
            peer = found.get(f"{name}_{kind}")
            row += ["", ""] if peer is None else [f"{peer:,.0f}",
                                                  f"{found[name] / peer:.{digits}f}"]
        yield f"| {' | '.join(row)} |"


def other_rows(report):
    found = values(report)
    for name in found:
        if not name.endswith("_prefill"):
            continue
        shape = name.removesuffix("_prefill")
        yield f"| {shape} | {found[name]:,.0f} | {found[f'{shape}_install']:.2f} |"


LONGER = """
### Long contexts, a mixture of experts, re-prefill

The limit of a mixture counts the experts that the rows of a step select (the number is that of all
layers). *Prefill* is a share of the speed of a large product in the same run
({flops:.0f} TFLOP/s). *Re-prefill* is what follows a weight sync: the engine computes the cache of
unfinished responses again and scores their prefixes. Contexts beyond {computed:,} tokens in all are
copies of those that were computed. Shares above 100 % occur because reading alone is faster than the
copy from which the bandwidth is measured.
"""
LONGER_FILES = ("decode_2048_h200.json", "decode_16384_h200.json", "decode_moe_h200.json")
COMPUTED_TOKENS = 1 << 18  # as in decode_bench.cc


def longer_lines():
    reports = [load(name) for name in LONGER_FILES]
    flops = reports[0]["gpu"]["gemm_flops_per_s"] / 1e12
    lines = [LONGER.format(flops=flops, computed=COMPUTED_TOKENS).rstrip(), ""]
    lines += [f"`{report['command']}`; commit {report['commit']}.  " for report in reports]
    lines += ["", "| shape | context | sequences | tokens/s | share of the limit | experts |",
              "|---|---|---|---|---|---|"]
    for report in reports:
        found = values(report)
        for name in found:
            if f"{name}_share_of_bandwidth" not in found:
                continue
            shape, batch = name.split("_batch_")
            experts = found.get(f"{name}_experts")
            lines.append(f"| {shape} | {report['settings']['context']:,} | {batch} | "
                         f"{found[name]:,.0f} | "
                         f"{100 * found[f'{name}_share_of_bandwidth']:.0f} % | "
                         f"{'' if experts is None else f'{experts:,.0f}'} |")
    lines += ["", "| shape | context | prefill, tokens/s | share of products | "
              "re-prefill, tokens/s | times a prefill | share of scores | weight installation, ms |",
              "|---|---|---|---|---|---|---|---|"]
    for report in reports:
        found = values(report)
        shape = next(name for name in found if name.endswith("_prefill")).removesuffix("_prefill")
        row = [shape, f"{report['settings']['context']:,}", f"{found[f'{shape}_prefill']:,.0f}",
               f"{100 * found[f'{shape}_prefill_share_of_products']:.0f} %"]
        if f"{shape}_reprefill" in found:
            row += [f"{found[f'{shape}_reprefill']:,.0f}",
                    f"{found[f'{shape}_reprefill_over_prefill']:.2f}",
                    f"{100 * found[f'{shape}_scoring_share']:.0f} %"]
        else:
            row += ["", "", ""]
        lines.append(f"| {' | '.join([*row, f'''{found[f'{shape}_install']:.1f}'''])} |")
    return lines


FLOAT8 = """
### Weights in eight bits

`engine.quantization=fp8` ([gpu.md](gpu.md#weights-in-eight-bits)) beside bf16 in the same run, context
{context:,}. The limit is that of eight-bit matrices. Dense networks read eight bits in passes of up to
eight rows, mixtures for their experts.
"""
FLOAT8_FILES = ("decode_fp8_h200.json", "decode_fp8_moe_h200.json")


def float8_lines():
    reports = [load(name) for name in FLOAT8_FILES]
    lines = [FLOAT8.format(context=reports[0]["settings"]["context"]).rstrip(), ""]
    lines += [f"`{report['command']}`; commit {report['commit']}.  " for report in reports]
    lines += ["", "| shape | sequences | bf16, tokens/s | fp8, tokens/s | times | share of the limit |",
              "|---|---|---|---|---|---|"]
    for report in reports:
        found = values(report)
        for name in found:
            if not name.endswith("_fp8_times_bf16"):
                continue
            fp8 = name.removesuffix("_times_bf16")
            plain = fp8.removesuffix("_fp8")
            shape, batch = plain.split("_batch_")
            lines.append(f"| {shape} | {batch} | {found[plain]:,.0f} | {found[fp8]:,.0f} | "
                         f"{found[name]:.2f} | {100 * found[f'{fp8}_share_of_bandwidth']:.0f} % |")
    return lines


DECODE_PARTS = """
### Time of a decode step

Each part of all layers is captured as a separate graph and timed on the device. The limit is the
time to read its weights, or its part of the KV cache, once. The parts do not add up to the step:
the difference is the time between two forward passes (metadata upload, download of token ids, one
launch) and the context, which grows while a step is timed.
"""

PREFILL_PARTS = """
### Time of a prefill pass

Each table is for a pass of 8,192 rows. The limit of a part is the time of its matrix products at the
speed of a large product. The kernel for experts is designed for few rows: it reads the weights of an
expert once for every eight of them.
"""

TRAIN = """
## Training on a GPU

Complete trainer steps on {num_sequences} sequences of {length:,} tokens and, as *mixed*, on
{num_mixed} sequences with exponentially distributed lengths of up to {longest:,} tokens.

| | |
|---|---|
| weights | random; float32 master weights and optimizer moments, bf16 computation |
| backward pass | layers recomputed, gradients clipped |
| optimizer | AdamW |
| on the same GPU | weights and KV cache ({kv_gib} GiB) of a rollout engine |
| limit | the FLOPs that the step must compute, at the speed of large products in the same run |
| sync | the trainer's copy for the engine, and its conversion in the engine |
| pause | the conversion alone; the engine does not generate during it |
| `transformers` | pure bf16 weights, activation checkpointing, fused AdamW |
| compiled | a plain Qwen3 in PyTorch: `torch.compile` and activation checkpointing per layer, bf16 \
autocast over float32 weights, fused AdamW; mixed lengths are packed into bins |
| memory | what LibTorch reserves at most; training is limited to what the compiled peer reserves |
"""
PARTS = """
### Time of a training step

Each part is timed alone and multiplied by the number of times a step runs it where it stores
nothing but the inputs of layers, on {shape}. The limit is the speed of large products
({flops:.0f} TFLOP/s) or of copies ({bandwidth:.2f} TB/s). Work queued before each part keeps the
device busy while the host enqueues it.
"""

TRAIN_NEXT = """
Remaining potential: attention, the part furthest from the limit of products; then the output head,
where logits are written and read in float32.
"""

METHODS = """
## Methods with rollout and training on one GPU

End-to-end runs, methods interleaved, for the number of steps shown; seconds per step after
warm-up.

| task | workload |
|---|---|
| `tiny` | the default task |
| `qwen3-0.6b` | random weights; response lengths with an exponential tail up to 2,048 tokens; \
prefix scores read at most 256 tokens, the same share as the published 1,024 of 8,192 |
| `backlog` | the same network; prompts of about 1,000 tokens, groups of 16 responses of 16 tokens |

Rescoring is *visible* where the trainer waits for it and *hidden* where it overlaps with training.
It is zero where no response was in flight when the weights changed, for example where training is
slower than generation and the engines are idle.
"""
# Notes on a file that its values do not contain.
METHOD_NOTES = {
    "methods_burst_h200.json":
        "A second configuration of `qwen3-0.6b`, measured during start-up: eight outstanding "
        "batches,\nunconstrained lengths, and Async also computes prefix scores (for logging "
        "only). All responses\nstart together. Rejections were not recorded. In `pace sim` the "
        "initial burst of completions lasts\nlonger than this run, and PACE rejects groups from "
        "it.",
    "methods_backlog_h200.json":
        "On `backlog` training limits the speed: the trainer never waits. Responses end within a "
        "step, and 18\ngroups are outstanding where a step takes four, so groups wait four steps or "
        "five. PACE rejects some\nof those that waited five. All responses have the same length, so "
        "the ratio of the time per trained\ntoken is that of the time per step.",
    "methods_backlog_pool_h200.json":
        "The same with the cutoff over the pool instead of over a window of past groups\n"
        "([policies.md](policies.md#pace-with-a-cutoff-over-the-pool)): PACE rejects two thirds of the\n"
        "groups. They were generated on the GPU that also trains, which makes steps longer by 9 %.",
    "methods_h200.json":
        "On `qwen3-0.6b` four batches are outstanding, and lengths are prescribed: the same for "
        "every method\nin a round. No group is rejected there, because generation is slower than "
        "training and no surplus\nbuilds up.",
}
METHOD_HEAD = [
    "| task | runs per method | steps | Sync, s | Async, s | PACE, s | PACE / Async (95 % interval) "
    "| Sync / Async | rejected | visible rescoring, s | hidden rescoring, s |",
    "|---|---|---|---|---|---|---|---|---|---|---|"]


def load(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def machine_lines(report):
    gpu = report["gpu"]
    peer = f"peer: {report['peer']}; " if "peer" in report else ""
    return [f"{gpu['name']}, CUDA {gpu['runtime_cuda']}; {peer}commit {report['commit']};",
            f"`{report['command']}`.", ""]


def part_lines(profile):
    """The parts of one step, as a table."""
    lines = ["", "| part | ms | share of the step | share of its limit |", "|---|---|---|---|"]
    step = profile["step_s"]
    for part in profile["parts"]:
        lines.append(f"| {part['name']} | {1e3 * part['seconds']:{places(step)}} | "
                     f"{100 * part['seconds'] / step:.0f} % | "
                     f"{100 * part['limit_s'] / part['seconds']:.0f} % |")
    return [*lines, f"| total | {1e3 * step:{places(step)}} | | |"]


def places(step):
    return ".1f" if step > 0.1 else ".3f"


def decode_part_lines(report):
    lines = []
    for profile in report.get("parts", []):
        shape, _, batch = profile["shape"].partition("_batch_")
        if batch not in ("1", "128"):
            continue
        if not lines:
            lines = [DECODE_PARTS.rstrip()]
        lines += [f"\n{shape}, batch of {batch}", *part_lines(profile)]
    return lines


def prefill_part_lines():
    lines = [PREFILL_PARTS.rstrip()]
    for report in map(load, ("decode_2048_h200.json", "decode_moe_h200.json")):
        context = report["settings"]["context"]
        for profile in report["parts"]:
            shape = profile["shape"].removesuffix("_prefill")
            if shape != profile["shape"]:
                lines += [f"\n{shape}, prompts of {context:,} tokens", *part_lines(profile)]
    return lines


def train_table(report):
    found = values(report)
    lines = machine_lines(report)
    kinds = ["compiled", "transformers"]
    columns = ["shape", "tokens/s", "share of the limit"]
    for kind in kinds:
        columns += [f"{kind}, tokens/s", "speed-up"]
    columns += ["memory, GiB", "compiled, GiB", "sync, ms", "pause, ms"]
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name in found:
        if not name.endswith("_train"):
            continue
        shape = name.removesuffix("_train")
        row = [shape.replace("_mixed", ", mixed"), f"{found[name]:,.0f}",
               f"{100 * found[f'{shape}_share_of_gemm_limit']:.0f} %"]
        for kind in kinds:
            peer = found.get(f"{name}_{kind}")
            row += ["", ""] if peer is None else [f"{peer:,.0f}", f"{found[name] / peer:.2f}"]
        row += [f"{found[f'{shape}_{part}']:.1f}"
                for part in ("training_memory", "memory_compiled", "sync", "sync_pause")]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def train_lines(report):
    settings = report["settings"]
    mixed = settings["mixed_lengths"]
    text = TRAIN.format(**settings, num_mixed=len(mixed), longest=max(mixed)).rstrip()
    lines = [text, "", *train_table(report)]
    gpu = report["gpu"]
    head = PARTS.format(shape=report["parts"][0]["shape"], flops=gpu["gemm_flops_per_s"] / 1e12,
                        bandwidth=gpu["bandwidth_bytes_per_s"] / 1e12).rstrip()
    for profile in report["parts"]:
        lines += [head, *part_lines(profile)]
        head = "\nThe same parts on " + report["parts"][-1]["shape"] + ":"
    return [*lines, TRAIN_NEXT.rstrip()]


def method_lines():
    lines = [METHODS.rstrip()]
    for path in sorted(RESULTS.glob("methods*_h200.json"), reverse=True):
        report = load(path.name)
        lines += ["", *machine_lines(report)]
        if path.name in METHOD_NOTES:
            lines += [METHOD_NOTES[path.name], ""]
        lines += [*METHOD_HEAD, *method_rows(report)]
    return lines


def method_rows(report):
    found, settings = values(report), report["settings"]
    for name in found:
        if not name.endswith("_effective_over_async"):
            continue
        task = name.removesuffix("_effective_over_async")
        low, high = report[f"{name}_95"]
        warm_up = settings.get(f"{task}_warm_up_steps", settings["warm_up_steps"])
        steps = f"{settings[f'{task}_steps'] - warm_up}"
        if f"{task}_sync_steps" in settings:
            sync = settings[f"{task}_sync_steps"] - settings["sync_warm_up_steps"]
            steps += f" (Sync {sync})"
        offered = found.get(f"{task}_effective_admission_offered")
        rejected = "" if offered is None else (
            f"{100 * found[f'{task}_effective_admission_rejected'] / offered:.1f} %")
        yield (f"| {task} | {settings['runs_of_each']} | {steps} | "
               f"{found[f'{task}_step_sync']:.3f} | {found[f'{task}_step_async']:.3f} | "
               f"{found[f'{task}_step_effective']:.3f} | "
               f"{found[name]:.3f} ({low:.3f} to {high:.3f}) | "
               f"{found[f'{task}_sync_over_async']:.2f} | {rejected} | "
               f"{found[f'{task}_effective_time_rescore_visible']:.4f} | "
               f"{found[f'{task}_effective_time_rescore_hidden']:.4f} |")


CPU = """
## On a CPU

A Qwen3 of 14 M random weights in float32 on two threads, beside `transformers` in the same run,
sides in turn. Decoding: 32 tokens of prompt, 128 new ones, greedy. Training: one step of PPO; the
peer pads its batch to the longest sequence.
"""


CPU_METHODS = """
### Methods with a core for rollouts and one for training

The default task, {steps} steps, {runs} runs of each method, in turn. A step trains the same number of
prompts with every method, but what PACE rejects changes the number of their tokens. So the time per
trained token stands beside that of a step.

{cpu}; commit {commit}; `pace bench methods`.

| method | step, s | trained token, us |
|---|---|---|"""


def cpu_method_lines():
    report = load("methods.json")
    found, settings = values(report), report["settings"]
    lines = [CPU_METHODS.format(steps=settings["steps"] - settings["warm_up_steps"],
                                runs=settings["runs_of_each"], cpu=report["machine"]["cpu"],
                                commit=report["commit"])]
    for name, method in (("Sync", "sync"), ("Async", "async"), ("PACE", "effective")):
        lines.append(f"| {name} | {found[f'step_{method}']:.3f} | "
                     f"{found[f'trained_token_{method}']:.1f} |")
    ratios = []
    for name, what in (("effective_over_async", "per step"),
                       ("effective_over_async_per_token", "per trained token")):
        low, high = report[f"{name}_95"]
        ratios.append(f"{found[name]:.3f} ({low:.3f} to {high:.3f}) {what}")
    return [*lines, "", f"PACE over Async: {', '.join(ratios)} (95 % interval of the median). PACE "
            f"rejected {100 * found['effective_rejected']:.0f} % of the groups that it drew."]


def cpu_rows(name):
    decode, train = load(f"rollout{name}.json"), load(f"train{name}.json")
    found = values(decode) | values(train)
    for what, key, peer in [
            *((f"decode, {batch} at a time", f"generate_float32_batch_{batch}",
               f"generate_float32_batch_{batch}_transformers") for batch in (1, 8, 64)),
            ("train", "train_float32_threads_2", "train_transformers_threads_2")]:
        yield (f"| {decode['machine']['cpu']} | {what} | {found[key]:,.0f} | {found[peer]:,.0f} | "
               f"{found[f'{key}_times_transformers']:.2f} |")


def cpu_lines():
    return [CPU, "| processor | what | tokens/s | transformers | times |", "|---|---|---|---|---|",
            *cpu_rows(""), *cpu_rows("_aarch64")]


RANKS = """
## Training on several ranks

{ranks} ranks with one thread each ([ranks.md](ranks.md)) train a Qwen3 of {parameters:.0f} million
parameters over gloo, beside one rank with {ranks} threads and PyTorch's `fully_shard` on as many
ranks, on the same sequences in the same rounds. Peer: {peer}.

{cpu}; commit {commit};
`pace bench ranks --repetitions {repetitions}`.

| `train.shard` | tokens/s | times one rank | times FSDP2 |
|---|---|---|---|
"""


def ranks_lines():
    report = load("ranks.json")
    found = values(report)
    settings = report["settings"]
    count = settings["ranks"]
    lines = [RANKS.format(ranks=count, parameters=settings["num_parameters"] / 1e6,
                          peer=report["peer"], cpu=report["machine"]["cpu"],
                          commit=report["commit"],
                          repetitions=settings["repetitions"]).rstrip()]
    for mode in ("none", "gradients", "full"):
        name = f"train_ranks_{count}_{mode}"
        lines.append(f"| `{mode}` | {found[name]:,.0f} | {found[f'{name}_times_threads']:.2f} | "
                     f"{found[f'{name}_times_fsdp2']:.2f} |")
    return lines


SERVE = """
## Serving on a CPU

`pace serve` beside {vllm} on the same model (`{model}`) and {threads} threads, in one run on
{cpu}; commit {commit}; `pace bench serve --repetitions {repetitions}`. Every response has
{tokens_per_response} tokens. Ready after {ready:.1f} s, vLLM after {vllm_ready:.0f} s.

| requests at a time | `pace serve`, tokens/s | vLLM, tokens/s | times |
|---|---|---|---|
"""
CLIENT = """
The client of [engines.md](engines.md) on the same servers: responses per second beside a bare asyncio
client, and the time from the resume after a weight sync to the first new token beside the client of
verl's asynchronous mode ({verl}).

| server | responses/s | bare client | ratio | resume, ms | verl's client, ms | ratio |
|---|---|---|---|---|---|---|
"""


def serve_lines():
    report = load("serve.json")
    found = values(report)
    lines = [SERVE.format(**report["settings"], vllm=report["vllm"], commit=report["commit"],
                          cpu=report["machine"]["cpu"], ready=found["ready"],
                          vllm_ready=found["vllm_ready"]).rstrip()]
    for count in (1, 8, 64):
        lines.append(f"| {count} | {found[f'pace_tokens_{count}']:,.0f} | "
                     f"{found[f'vllm_tokens_{count}']:,.0f} | {found[f'times_vllm_{count}']:.1f} |")
    lines.append(CLIENT.format(verl=report["verl"]).rstrip())
    for name, server in (("`pace serve`", "pace"), ("vLLM", "vllm")):
        lines.append(f"| {name} | {found[f'{server}_our_client_responses']:.1f} | "
                     f"{found[f'{server}_bare_client_responses']:.1f} | "
                     f"{found[f'{server}_our_client_of_bare']:.2f} | "
                     f"{1e3 * found[f'{server}_our_resume_to_token']:.0f} | "
                     f"{1e3 * found[f'{server}_verl_resume_to_token']:.0f} | "
                     f"{found[f'{server}_our_resume_of_verl']:.2f} |")
    return lines


def page():
    report = load("decode_h200.json")
    settings = report["settings"]
    gpu = report["gpu"]
    lines = [
        HEAD,
        f"{gpu['name']}, {gpu['bandwidth_bytes_per_s'] / 1e12:.2f} TB/s, CUDA "
        f"{gpu['runtime_cuda']}; context {settings['context']};",
        f"peer: {report['peer']}; commit {report['commit']};",
        f"`{report['command']}`.",
        "",
        "| shape | sequences | tokens/s | share of the limit | compiled, tokens/s | speed-up "
        "| transformers, tokens/s | speed-up |",
        "|---|---|---|---|---|---|---|---|",
        *decode_rows(report),
        "",
        "| shape | prefill, tokens/s | weight installation, ms |",
        "|---|---|---|",
        *other_rows(report),
        *longer_lines(),
        *float8_lines(),
        *decode_part_lines(report),
        *prefill_part_lines(),
        NEXT.rstrip(),
        *train_lines(load("train_h200.json")),
        *method_lines(),
        *cpu_lines(),
        *cpu_method_lines(),
        *ranks_lines(),
        *serve_lines(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
