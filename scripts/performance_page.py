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
Where one sequence's time goes, and what would be next: between two kernels the memory idles
for a few microseconds, five times in each layer; fewer and longer kernels would win most of
what is left. For many sequences cuBLAS' products take about twice the time of reading their
weights.
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


def page():
    report = json.loads((RESULTS / "decode_h200.json").read_text(encoding="utf-8"))
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
        NEXT.rstrip(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
