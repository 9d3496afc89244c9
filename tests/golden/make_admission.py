"""Admission traces and their verdicts, by docs/method.md, in plain Python."""

import math
import random

import golden_files

DEFAULTS = {"policy": "pace", "target_occupancy": 6, "beta": 0.6, "max_budget": 0.9, "window": 512,
            "min_observations": 8, "gamma": 4.0, "wait_weight": 1.0, "generation_weight": "prefix",
            "unscored_weight": 1.0}
CONFIGS = {
    "effective": {},
    "raw": {"generation_weight": "one"},
    "generation": {"wait_weight": 0.0, "beta": 0.3},
    "waiting": {"generation_weight": "zero", "max_budget": 0.4},
    "small_window": {"window": 10, "gamma": 1.5, "unscored_weight": 0.25},
    "stale_2": {"policy": "stale_k", "k": 2.0},
}


def trace(seed, num_steps, per_step):
    """Steps with draws: responses that began some versions ago, some interrupted and scored."""
    rng = random.Random(seed)
    group = 0
    for step in range(num_steps):
        yield {"step": step, "occupancy": rng.choice((0, 3, 6, 7, 9, 14, 30))}
        for _ in range(rng.randrange(per_step // 2, per_step)):
            members = []
            for _ in range(rng.randrange(1, 4)):
                completed = rng.randint(max(0, step - 4), step)
                versions = sorted({rng.randint(max(0, completed - 5), completed)
                                   for _ in range(rng.randrange(1, 4))})
                scored = len(versions) > 1 and rng.random() < 0.8
                members.append({
                    "completed": completed,
                    "segments": [[version, rng.randrange(1, 200)] for version in versions],
                    # Few distinct values, so that ties occur.
                    "prefix_score": rng.randrange(1, 12) / 64 if scored else None})
            yield {"group": group, "members": members}
            group += 1


def mean(values):
    return sum(values) / len(values)


def quantile(values, p):
    ordered = sorted(values)
    h = (len(ordered) - 1) * p
    low = math.floor(h)
    if low + 1 >= len(ordered):
        return ordered[-1]
    return ordered[low] + (ordered[low + 1] - ordered[low]) * (h - low)


class Judge:
    """One policy over one trace; scores enter the windows when the next step begins."""

    def __init__(self, config):
        self.config = config
        self.rate = 0.0
        self.step = 0
        self.window, self.prefix_window = [], []
        self.seen, self.seen_prefix = [], []
        self.budget, self.cutoff = 0.0, None

    def line(self, row):
        return self.begin(row) if "step" in row else self.draw(row)

    def begin(self, row):
        c = self.config
        self.step = row["step"]
        if c["policy"] == "stale_k":
            return {"step": self.step}
        self.window = (self.window + self.seen)[-c["window"]:]
        self.prefix_window = (self.prefix_window + self.seen_prefix)[-c["window"]:]
        self.seen, self.seen_prefix = [], []
        pooled = row["occupancy"]
        target = min(max((pooled - c["target_occupancy"]) / max(pooled, 1), 0.0), 1.0)
        self.rate = c["beta"] * self.rate + (1 - c["beta"]) * target
        self.budget = min(self.rate, c["max_budget"])
        ready = len(self.window) >= c["min_observations"] and self.budget > 0
        self.cutoff = quantile(self.window, 1 - self.budget) if ready else None
        return {"step": self.step, "target_rate": target, "smoothed_rate": self.rate,
                "budget": self.budget, "cutoff": self.cutoff}

    def draw(self, row):
        members = row["members"]
        waiting = mean([self.step - m["completed"] for m in members])
        generation = mean([
            sum((m["completed"] - version) * tokens for version, tokens in m["segments"])
            / sum(tokens for _, tokens in m["segments"]) for m in members])
        if self.config["policy"] == "stale_k":
            fresh = generation + waiting <= self.config["k"]
            return {"group": row["group"], "waiting": waiting, "generation": generation,
                    "score": generation + waiting, "verdict": "admit" if fresh else "reject",
                    "reason": "within_bound" if fresh else "over_bound"}
        scores = [m["prefix_score"] for m in members if m["prefix_score"] is not None]
        prefix = mean(scores) if scores else None
        percentile, weight = self.weigh(prefix)
        score = self.config["wait_weight"] * waiting + weight * generation
        if len(self.window) < self.config["min_observations"]:
            reason = "warming_up"
        elif self.budget == 0:
            reason = "no_budget"
        else:
            reason = "over_cutoff" if score > self.cutoff else "under_cutoff"
        self.seen.append(score)
        if prefix is not None:
            self.seen_prefix.append(prefix)
        return {"group": row["group"], "waiting": waiting, "generation": generation,
                "prefix_score": prefix, "percentile": percentile, "weight": weight, "score": score,
                "verdict": "reject" if reason == "over_cutoff" else "admit", "reason": reason}

    def weigh(self, prefix):
        c = self.config
        if c["generation_weight"] == "one":
            return None, 1.0
        if c["generation_weight"] == "zero":
            return None, 0.0
        if prefix is None or len(self.prefix_window) < c["min_observations"]:
            return None, c["unscored_weight"]
        q = sum(x <= prefix for x in self.prefix_window) / len(self.prefix_window)
        rise, fall = q ** c["gamma"], (1 - q) ** c["gamma"]
        return q, rise / (rise + fall)


def write(folder):
    for seed, (name, change) in enumerate(CONFIGS.items(), 1):
        config = {**DEFAULTS, **change}
        rows = list(trace(seed, 9, 9))
        judge = Judge(config)
        target = folder / "admission"
        golden_files.write_lines(target / f"{name}.json", [{"config": config}])
        golden_files.write_lines(target / f"{name}.trace.jsonl", rows)
        golden_files.write_lines(target / f"{name}.expected.jsonl", [judge.line(r) for r in rows])
