"""Writes docs/performance.md from the results in bench/results.

    python3 scripts/performance_page.py > docs/performance.md
"""

import json
import pathlib
import sys

RESULTS = pathlib.Path(__file__).parents[1] / "bench" / "results"

HEAD = """# Performance

Written by `scripts/performance_page.py` from `bench/results`; medians of the repetitions
that each file lists.

## Decoding on a GPU

Random weights in bf16, every sequence at the same context, sampling at temperature 1, host
work included. The limit is the time that reading the weights and the cache once takes at
the bandwidth of a large copy within the device. `transformers` waits for its host most of
the time, so its repetitions spread widely; the file has them all.
"""

NEXT = """
What would be next. For one sequence: attention, which reads little and takes ten microseconds
in each layer, one after the other waiting for the product before it, the norm, the cache
and the other parts of its context; and the two smallest products, where the memory idles for
more than half as long as they read. For many sequences: cuBLAS' products, which take two (4B) to
six times (0.6B) as long as reading their weights.
"""


def values(report):
    return {m["name"]: m["value"] for m in report["measurements"]}


def decode_rows(report):
    found = values(report)
    for name in found:
        if name.endswith(("_transformers", "_share_of_bandwidth", "_prefill", "_install")):
            continue
        shape, batch = name.split("_batch_")
        peer = found.get(f"{name}_transformers")
        beside = "" if peer is None else f"{peer:,.0f}"
        times = "" if peer is None else f"{found[name] / peer:.1f}"
        yield (f"| {shape} | {batch} | {found[name]:,.0f} | "
               f"{100 * found[f'{name}_share_of_bandwidth']:.0f} % | {beside} | {times} |")


def other_rows(report):
    found = values(report)
    for name in found:
        if not name.endswith("_prefill"):
            continue
        shape = name.removesuffix("_prefill")
        yield f"| {shape} | {found[name]:,.0f} | {found[f'{shape}_install']:.2f} |"


DECODE_PARTS = """
### Where a decode step goes

Each part of all layers as a graph of its own, timed on the device; the limit is the time of
reading its weights or its part of the cache once. What the parts do not sum to lies between two
passes (tables up, ids down, one launch) and in the context, which grows while a step is timed.
"""

TRAIN = """
## Training on a GPU

Whole steps of the trainer on {num_sequences} sequences of {length:,} tokens: random weights, float32
masters and moments, bf16 computation, layers computed again in the backward pass, clipped
gradients, AdamW. Weights and cache ({kv_gib} GiB) of a rollout engine lie beside it. A sync is the
trainer's copy for the engine and its conversion there; the engine pauses for the second
alone. Of the limit: what the step must compute, against large products in the same run.
`transformers` trains pure bf16 weights, with checkpointing and fused AdamW.
"""

PARTS = """
### Where a training step goes

Each part alone, times how often a step runs it, on {shape}; the limit is that of large
products ({flops:.0f} TFLOP/s) or of copies ({bandwidth:.2f} TB/s). Work before each part keeps the
device busy while the host queues it.
"""

TRAIN_NEXT = """
What would be next: attention (FlashAttention 2), the part furthest from the limit of products;
then the head, where logits are written and read in float32.
"""

METHODS = """
## Methods where rollouts and training share a GPU

Whole runs, methods in turn, of so many steps; seconds per step behind those that warm up. `tiny` is
the default task; `qwen3-0.6b` has random weights and responses whose lengths have an exponential
tail up to 2,048 tokens; prefix scores read 256 of them at most, as large a share as the published
1,024 of 8,192. Rescoring is visible where the trainer waits for it and hidden where it runs beside
training; it is zero where no response was in flight when weights changed, as where training
is the slower side and engines rest.
"""
# What one should know of a file beside what it says.
METHOD_NOTES = {
    "methods_burst_h200.json":
        "Another setting of `qwen3-0.6b`, at its start: eight batches outstanding, all responses "
        "begin together\nand end by chance, and Async computes prefix scores, too, for its "
        "records. Rejections\nwere not recorded. In `pace sim` the burst in which responses end "
        "outlasts such a run, and PACE rejects\nfrom it.",
    "methods_h200.json":
        "On `qwen3-0.6b` four batches are outstanding, and lengths are prescribed, the same for "
        "every method\nin a round. Nothing is rejected there: generation is the slower side, so no "
        "surplus waits.",
}
METHOD_HEAD = [
    "| task | runs of each | steps | Sync | Async | PACE | PACE / Async (95 %) | Sync / Async "
    "| rejected | rescoring visible | hidden |", "|---|---|---|---|---|---|---|---|---|---|---|"]


def load(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def machine_lines(report):
    gpu = report["gpu"]
    peer = f"peer: {report['peer']}; " if "peer" in report else ""
    return [f"{gpu['name']}, CUDA {gpu['runtime_cuda']}; {peer}commit {report['commit']};",
            f"`{report['command']}`.", ""]


def part_lines(profile):
    """The parts of one step, as a table."""
    lines = ["", "| part | ms | of the step | of its limit |", "|---|---|---|---|"]
    step = profile["step_s"]
    for part in profile["parts"]:
        lines.append(f"| {part['name']} | {1e3 * part['seconds']:{places(step)}} | "
                     f"{100 * part['seconds'] / step:.0f} % | "
                     f"{100 * part['limit_s'] / part['seconds']:.0f} % |")
    return [*lines, f"| the step as a whole | {1e3 * step:{places(step)}} | | |"]


def places(step):
    return ".1f" if step > 0.1 else ".3f"


def decode_part_lines(report):
    lines = []
    for profile in report.get("parts", []):
        shape, batch = profile["shape"].split("_batch_")
        if batch not in ("1", "128"):
            continue
        if not lines:
            lines = [DECODE_PARTS.rstrip()]
        lines += [f"\n{shape}, sequences at a time: {batch}", *part_lines(profile)]
    return lines


def train_lines(report):
    found = values(report)
    lines = [TRAIN.format(**report["settings"]).rstrip(), "", *machine_lines(report),
             "| shape | tokens/s | of the limit | transformers | times | memory, GiB "
             "| sync, ms | pause, ms |", "|---|---|---|---|---|---|---|---|"]
    for name in found:
        if not name.endswith("_train"):
            continue
        shape = name.removesuffix("_train")
        peer = found.get(f"{name}_transformers")
        beside = " | " if peer is None else f"{peer:,.0f} | {found[name] / peer:.2f}"
        lines.append(f"| {shape} | {found[name]:,.0f} | "
                     f"{100 * found[f'{shape}_share_of_gemm_limit']:.0f} % | {beside} | "
                     f"{found[f'{shape}_memory']:.1f} | {found[f'{shape}_sync']:.1f} | "
                     f"{found[f'{shape}_sync_pause']:.1f} |")
    gpu = report["gpu"]
    head = PARTS.format(shape=report["parts"][0]["shape"], flops=gpu["gemm_flops_per_s"] / 1e12,
                        bandwidth=gpu["bandwidth_bytes_per_s"] / 1e12).rstrip()
    for profile in report["parts"]:
        lines += [head, *part_lines(profile)]
        head = "\nThe same on " + report["parts"][-1]["shape"] + ":"
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
        steps = f"{settings[f'{task}_steps'] - settings['warm_up_steps']}"
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
        "| shape | sequences | tokens/s | of the limit | transformers | times |",
        "|---|---|---|---|---|---|",
        *decode_rows(report),
        "",
        "| shape | prefill, tokens/s | installing weights, ms |",
        "|---|---|---|",
        *other_rows(report),
        *decode_part_lines(report),
        NEXT.rstrip(),
        *train_lines(load("train_h200.json")),
        *method_lines(),
        *cpu_lines(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
