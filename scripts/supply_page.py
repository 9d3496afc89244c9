#!/usr/bin/env python3
"""Writes docs/supply.md: just-in-time supply beside fixed thresholds, simulated.

    scripts/supply_page.py [--pace build/pace] [--jobs 2] > docs/supply.md

Every number is simulated, so the page is the same on every machine.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import tempfile

STEPS = 300
SETTLED = 20  # steps after a start or a change that do not count
CHANGE = 150
SLOWDOWN = 1.02
THRESHOLDS = range(1, 9)
RANDOM = range(60)

PRESETS = {
    "math-4b": ["math-4b"],
    "math-8b": ["math-8b"],
    "moe-30b": ["moe-30b"],
    "retool-4b, 2 + 2 GPUs": ["retool-4b", "cluster.rollout_gpus=2"],
    "time-6gpu": ["time-6gpu"],
}
CHANGED = ["math-4b", "math-8b", "retool-4b, 2 + 2 GPUs", "time-6gpu"]
CHANGES = {
    "responses twice as long": ["change.length=2"],
    "an engine lost": ["change.lost_engines=1"],
    "trainer twice as fast": ["change.trainer_speed=2"],
    "trainer half as fast": ["change.trainer_speed=0.5"],
}


def random_cluster(number):
    """Settings of a cluster: dense or mixture of experts, with tools or without."""
    draw = random.Random(5000 + number)
    kind = draw.choice(["math-4b", "math-8b", "moe-30b"])
    batch, group = draw.choice([8, 12, 16, 24, 32]), draw.choice([4, 8, 12, 16])
    rollout = draw.choice([2, 3, 4, 6, 8, 12, 16])
    if kind == "moe-30b":
        rollout = 2 * max(2, rollout // 2)  # two GPUs per engine
    trainer = draw.choice([4, 6, 8, 12] if kind == "moe-30b" else [1, 2, 3, 4, 6, 8])
    settings = [kind, f"batch.num_groups={batch}", f"batch.group_size={group}",
                "batch.num_updates=1", f"cluster.rollout_gpus={rollout}",
                f"cluster.trainer_gpus={trainer}",
                f"cluster.slots={draw.choice([64, 128, 256])}",
                f"workload.mean_tokens={round(draw.uniform(600, 5000))}",
                f"workload.sigma={draw.uniform(.3, .9):.2f}", "workload.max_tokens=8192"]
    if draw.random() < .4:
        settings += ["workload.max_turns=8", f"workload.mean_turns={draw.uniform(1.5, 4):.2f}",
                     f"workload.tool_latency_s={draw.uniform(.5, 8):.2f}",
                     "workload.tool_latency_sigma=1", "workload.tool_tokens=80",
                     "workload.tool_concurrency=16"]
    return settings


def simulate(pace, settings, *more):
    """The metrics of a simulated run, one row per step."""
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        subprocess.run([pace, "sim", *settings, "compare.methods=", "compare.overrides=",
                        f"run.num_steps={STEPS}", "record.level=metrics", *more, "--jobs", "1",
                        "--out", run], check=True, capture_output=True)
        metrics = next(pathlib.Path(run).rglob("metrics.jsonl"))
        return [json.loads(line) for line in metrics.read_text().splitlines()]


class Phase:
    """Means over the settled steps of a phase."""

    def __init__(self, rows, begin, end):
        rows = rows[begin + SETTLED:end]
        self.step = sum(row["time/step"] for row in rows) / len(rows)
        self.token = self.step * len(rows) / sum(row["selection/length_trained"] for row in rows)
        self.wait = sum(row["time/wait_data"] for row in rows) / len(rows) / self.step
        self.lag = sum(row["staleness/waiting/mean"] + row["staleness/generation/mean"]
                       for row in rows) / len(rows)


def best_threshold(phases, time="step"):
    """The smallest whole threshold that is as fast as 8, of {threshold: phase}."""
    return next(t for t in THRESHOLDS
                if getattr(phases[t], time) <= SLOWDOWN * getattr(phases[8], time))


def steady_row(pace, name, settings):
    fixed = {t: Phase(simulate(pace, settings, "--methods", "async", f"supply.threshold={t}"),
                      0, STEPS) for t in THRESHOLDS}
    rows = simulate(pace, settings, "--methods", "jit")
    found = Phase(rows, 0, STEPS)
    best = best_threshold(fixed)
    wasted = rows[-1]["cost/tokens_never_trained"] / rows[-1]["cost/tokens_generated"]
    return (f"| {name} | {fixed[8].wait:.0%} | {found.step / fixed[8].step:.3f} | "
            f"{found.lag:.2f} | {best} | {fixed[best].step / fixed[8].step:.3f} | "
            f"{fixed[best].lag:.2f} | {wasted:.0%} |")


def change_row(pace, name, settings, change):
    settings = [*settings, *CHANGES[change], f"change.step={CHANGE}"]

    def phases(*method):
        rows = simulate(pace, settings, "--methods", *method)
        return Phase(rows, 0, CHANGE), Phase(rows, CHANGE, STEPS)

    fixed = {t: phases("async", f"supply.threshold={t}") for t in THRESHOLDS}
    found = phases("jit")
    first, second = (best_threshold({t: fixed[t][i] for t in THRESHOLDS}) for i in (0, 1))
    reference = fixed[second][1]
    return (f"| {name} | {change} | {found[0].step / fixed[first][0].step:.3f} | "
            f"{found[1].step / reference.step:.3f} | {found[1].lag:.2f} | {second} | "
            f"{reference.lag:.2f} | {first} | {fixed[first][1].step / reference.step:.3f} | "
            f"{fixed[first][1].lag:.2f} |")


def lean_row(pace, name, settings, change):
    settings = [*settings, *CHANGES[change], f"change.step={CHANGE}"]

    def phases(*more):
        rows = simulate(pace, settings, "--methods", "lean", *more)
        return Phase(rows, 0, CHANGE), Phase(rows, CHANGE, STEPS)

    fixed = {t: phases("compare.overrides=lean:supply.policy=threshold", f"supply.threshold={t}")
             for t in THRESHOLDS}
    found = phases()
    first, second = (best_threshold({t: fixed[t][i] for t in THRESHOLDS}, "token") for i in (0, 1))
    reference = fixed[second][1]
    return (f"| {name} | {change} | {found[0].token / fixed[first][0].token:.3f} | "
            f"{found[1].token / reference.token:.3f} | {found[1].lag:.2f} | {second} | "
            f"{reference.lag:.2f} | {first} | {fixed[first][1].token / reference.token:.3f} |")


def _numbers(row, *columns):
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    return [float(cells[column]) for column in columns]


def steady_summary(rows):
    """What the rows of the first table say together."""
    fast = sum(_numbers(row, 2)[0] <= SLOWDOWN for row in rows)
    fresh = sum(found <= best + .05 for found, best in (_numbers(row, 3, 6) for row in rows))
    return (f"The step time is within 2 % of that of threshold 8 in {fast} of {len(rows)} clusters, "
            f"and the lag at most 0.05\nabove that of the best threshold in {fresh}.\n")


def change_summary(rows):
    """What the rows of the second table say together."""
    close = sum(_numbers(row, 3)[0] <= 1.03 for row in rows)
    slow = max(_numbers(row, 8)[0] for row in rows)
    return (f"After the change the step time is within 3 % of that of the best threshold in {close} of "
            f"{len(rows)} cases.\nThe threshold that was best before the change is up to "
            f"{slow - 1:.0%} slower than the best one after it.\n")


def lean_summary(rows):
    """What the rows of the third table say together."""
    before, after = (sum(_numbers(row, column)[0] <= 1.03 for row in rows) for column in (2, 3))
    return (f"The time per token is within 3 % of that of the best threshold in {before} of {len(rows)} "
            f"cases before\nthe change and in {after} after it.\n")


HEAD = f"""# Just-in-time supply in the simulator

This page compares just-in-time supply ([policies.md](policies.md#just-in-time-supply)) with fixed
supply thresholds on modelled clusters. It is for readers who want to know how close the policy
comes to a threshold that was tuned by hand. `scripts/supply_page.py` generates the page; every
number comes from `pace sim` and is the same on every machine. Continue with
[advise.md](advise.md) for your own cluster.

Runs have {STEPS} steps; the first {SETTLED} steps after a start or a change do not count. The *best
threshold* is the smallest whole one whose step time is within 2 % of that of threshold 8. Times are
ratios; lag is waiting + generation staleness of trained groups, in versions.

## Steady clusters

Random clusters (r) are dense or mixtures of experts, with tools or without. The constants of the
policy were chosen on r0 to r19, and one rule was added after r20 to r39 had been simulated; r40 to
r59 were drawn afterwards. Where the trainer waits under threshold 8, the engines are the bottleneck.

| cluster | wait under 8 | time over 8 | lag | best threshold | its time over 8 | its lag | wasted |
|---|---|---|---|---|---|---|---|
"""

CHANGES_HEAD = f"""
## Changes in mid-run

After {CHANGE} of {STEPS} steps the cluster changes. *first threshold* is the best one before the change.

| cluster | change | time before, over best | time after, over best | lag after | best threshold after | its lag | first threshold | its time after, over best | its lag after |
|---|---|---|---|---|---|---|---|---|---|
"""


LEAN_HEAD = """
## Changes in mid-run, under lean

The same with all rules of [lean](policies.md#lean), and thresholds in place of its supply. What a
threshold produces too early, the other rules reject, and the stalest groups have the longest
responses. A step then takes less time because it trains on less. So times are per trained token.

| cluster | change | time before, over best | time after, over best | lag after | best threshold after | its lag | first threshold | its time after, over best |
|---|---|---|---|---|---|---|---|---|
"""


def page(steady, changed, lean):
    return (HEAD + "\n".join(steady) + "\n\n" + steady_summary(steady) + CHANGES_HEAD +
            "\n".join(changed) + "\n\n" + change_summary(changed) + LEAN_HEAD + "\n".join(lean) +
            "\n\n" + lean_summary(lean))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pace", default="build/pace")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    clusters = {**PRESETS, **{f"r{i}": random_cluster(i) for i in RANDOM}}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        steady = pool.map(lambda name: steady_row(arguments.pace, name, clusters[name]), clusters)
        cases = [(name, change) for name in CHANGED for change in CHANGES]
        changed, lean = (
            pool.map(lambda case, row=row: row(arguments.pace, case[0], PRESETS[case[0]], case[1]),
                     cases) for row in (change_row, lean_row))
        print(page(list(steady), list(changed), list(lean)), end="")


if __name__ == "__main__":
    main()
