"""PACE's rules as a few plain Python functions: the peer of `pace bench controller`.

Lists and dicts, nothing kept sorted: a cutoff sorts its window, a percentile
counts through it, a draw by score sorts the pool.

    naive_controller.py --verdicts CONFIG.json < TRACE.jsonl           one line per line
    naive_controller.py --bench SECONDS WINDOW SMALL_POOL LARGE_POOL   one JSON object
"""

import json
import math
import platform
import random
import statistics
import sys
import time


class NaiveController:
    def __init__(self, config):
        self.config = config
        self.step = 0
        self.smoothed_rate = 0.0
        self.cutoff = None
        self.scores, self.prefix_scores = [], []
        self.drawn_scores, self.drawn_prefix_scores = [], []
        self.pool = []

    def begin_step(self, step, occupancy):
        config = self.config
        self.step = step
        self.scores = (self.scores + self.drawn_scores)[-config["window"]:]
        self.prefix_scores = (self.prefix_scores + self.drawn_prefix_scores)[-config["window"]:]
        self.drawn_scores, self.drawn_prefix_scores = [], []

        excess = (occupancy - config["target_occupancy"]) / max(occupancy, 1)
        rate = min(max(excess, 0.0), 1.0)
        self.smoothed_rate = config["beta"] * self.smoothed_rate + (1.0 - config["beta"]) * rate
        budget = min(self.smoothed_rate, config["max_budget"])
        self.cutoff = None
        if len(self.scores) >= config["min_observations"] and budget > 0:
            self.cutoff = quantile(self.scores, 1.0 - budget)
        if config["policy"] == "stale_k":
            return {}
        return {"target_rate": rate, "smoothed_rate": self.smoothed_rate, "budget": budget,
                "cutoff": self.cutoff}

    def judge(self, group):
        waiting = sum(self.step - completed for completed in group["completed"])
        waiting = waiting / len(group["completed"])
        if self.config["policy"] == "stale_k":
            score = group["generation"] + waiting
            admitted = score <= self.config["k"]
            return {"waiting": waiting, "generation": group["generation"], "score": score,
                    "verdict": "admit" if admitted else "reject",
                    "reason": "within_bound" if admitted else "over_bound"}
        percentile, weight = self.weigh(group["prefix_score"])
        score = self.config["wait_weight"] * waiting + weight * group["generation"]
        if len(self.scores) < self.config["min_observations"]:
            reason = "warming_up"
        elif self.cutoff is None:
            reason = "no_budget"
        else:
            reason = "over_cutoff" if score > self.cutoff else "under_cutoff"
        return {"waiting": waiting, "generation": group["generation"],
                "prefix_score": group["prefix_score"], "percentile": percentile,
                "weight": weight, "score": score,
                "verdict": "reject" if reason == "over_cutoff" else "admit", "reason": reason}

    def weigh(self, prefix_score):
        """The percentile, where one is used, and what generation staleness counts for."""
        if self.config["generation_weight"] != "prefix":
            return None, 1.0 if self.config["generation_weight"] == "one" else 0.0
        if prefix_score is None or len(self.prefix_scores) < self.config["min_observations"]:
            return None, self.config["unscored_weight"]
        at_or_below = sum(1 for x in self.prefix_scores if x <= prefix_score)
        q = at_or_below / len(self.prefix_scores)
        rises, falls = q ** self.config["gamma"], (1.0 - q) ** self.config["gamma"]
        return q, rises / (rises + falls)

    def observe(self, group, decision):
        self.drawn_scores.append(decision["score"])
        if group["prefix_score"] is not None:
            self.drawn_prefix_scores.append(group["prefix_score"])

    def put(self, group):
        self.pool.append(group)

    def draw(self, order):
        if order == "lowest_score":
            self.pool.sort(key=lambda group: self.judge(group)["score"])
        return self.pool.pop(0)


def quantile(values, p):
    values = sorted(values)
    h = (len(values) - 1) * p
    low = math.floor(h)
    if low + 1 >= len(values):
        return values[-1]
    return values[low] + (values[low + 1] - values[low]) * (h - low)


def summary(group_id, members):
    """What admission needs of a finished group; members are in the form of a trace."""
    generation = 0.0
    for member in members:
        lag = sum((member["completed"] - version) * tokens
                  for version, tokens in member["segments"])
        generation += lag / sum(tokens for _, tokens in member["segments"])
    scored = [member["prefix_score"] for member in members if member["prefix_score"] is not None]
    prefix_score = None
    if scored:
        total = 0.0  # sum() adds floats in another way from Python 3.12 on
        for score in scored:
            total += score
        prefix_score = total / len(scored)
    return {"id": group_id, "completed": [member["completed"] for member in members],
            "generation": generation / len(members), "prefix_score": prefix_score}


def print_verdicts(config, lines):
    controller = NaiveController(config)
    for line in map(json.loads, lines):
        if "step" in line:
            plan = controller.begin_step(line["step"], line["occupancy"])
            print(json.dumps({"step": line["step"], **plan}))
        else:
            group = summary(line["group"], line["members"])
            decision = controller.judge(group)
            controller.observe(group, decision)
            print(json.dumps({"group": line["group"], **decision}))


# The benchmark. The mix of groups has the shape of src/bench/group_mix.cc.


def random_group(rng, group_id, step):
    members = []
    for _ in range(8):
        completed = step - rng.randrange(3)
        num_tokens = rng.randrange(100, 4000)
        segments = [[completed - rng.randrange(1, 4), num_tokens]]
        if rng.random() < 0.6:
            segments.append([completed, rng.randrange(100, 4000)])
        score = rng.expovariate(20.0) if len(segments) > 1 else None
        members.append({"completed": completed, "segments": segments, "prefix_score": score})
    return summary(group_id, members)


def aged(group, by):
    return {**group, "completed": [completed + by for completed in group["completed"]]}


def filled_controller(window, groups, step):
    """Full windows and a budget: past warming up, as in the middle of a run."""
    controller = NaiveController(
        {"policy": "pace", "target_occupancy": 64, "beta": 0.9, "max_budget": 0.9,
         "window": window, "min_observations": 32, "gamma": 4.0, "wait_weight": 1.0,
         "generation_weight": "prefix", "unscored_weight": 1.0})
    controller.begin_step(step, 96)
    for i in range(2 * window):
        group = groups[i % len(groups)]
        controller.observe(group, controller.judge(group))
    controller.begin_step(step, 96)
    return controller


def time_verdicts(controller, groups, seconds):
    passes, first, started = [], 0, time.perf_counter()
    while (begin := time.perf_counter()) - started < seconds or not passes:
        for group in groups[first:first + 32]:
            controller.judge(group)
        passes.append(time.perf_counter() - begin)
        first = (first + 32) % len(groups)
    return statistics.median(passes) / 32 * 1e9


def time_begin_steps(controller, groups, rng, seconds):
    steps, spent, first = [], 0.0, controller.step
    while spent < seconds:
        for group in rng.sample(groups, rng.randrange(12, 101)):
            group = aged(group, controller.step - first)
            score = controller.config["wait_weight"] + group["generation"]
            controller.observe(group, {"score": score})
        begin = time.perf_counter()
        controller.begin_step(controller.step + 1, 96)
        steps.append(time.perf_counter() - begin)
        spent += steps[-1]
    return statistics.median(steps) * 1e6


def time_pool(controller, groups, num_groups, order, seconds):
    controller.pool = (groups * (num_groups // len(groups) + 1))[:num_groups]
    count, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds or count == 0:
        num_pairs = 1 if order == "lowest_score" else 100
        for i in range(num_pairs):
            controller.put(groups[i])
            controller.draw(order)
        count += num_pairs
    return count / elapsed


def bench(seconds, window, small_pool, large_pool):
    rng, step = random.Random(1), 100
    groups = [random_group(rng, i, step) for i in range(4096)]
    controller = filled_controller(window, groups, step)
    return {"python": platform.python_version(),
            "verdict": time_verdicts(controller, groups, seconds),
            "begin_step": time_begin_steps(controller, groups, rng, seconds),
            "pool_small": time_pool(controller, groups, small_pool, "completion", seconds),
            "pool_large": time_pool(controller, groups, large_pool, "completion", seconds),
            "pool_small_lowest_score":
                time_pool(controller, groups, small_pool, "lowest_score", seconds)}


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--verdicts":
        with open(arguments[1], encoding="utf-8") as file:
            print_verdicts(json.load(file)["config"], sys.stdin)
    elif len(arguments) == 5 and arguments[0] == "--bench":
        print(json.dumps(bench(float(arguments[1]), *map(int, arguments[2:]))))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
