#!/usr/bin/env python3
"""Checks the steady occupancy that docs/method.md derives against a queue.

    python3 docs/occupancy_check.py            # one to two minutes
    python3 docs/occupancy_check.py --steps 1000 --seed 2

A trainer trains for one unit of time per step; groups arrive at `ratio * batch`
per unit of time, evenly or as a Poisson process. A group's score is the steps
it waited, plus `noise` times a uniform number where noise is asked for. Budget,
moving average, window, quantile and ties are those of src/control, draws are in
completion order, and a group of lag 0 is always admitted (freshest possible).
The pool has no bound and supply no limit.

Columns:
  produced  P/C: groups produced per step over the batch, measured
  simple    N_tar P/C
  N         mean occupancy as a step begins; N/simple follows
  formula   1 + beta CV^2 with the measured CV of N
  prior     the same with CV^2 from the variance of production, P and C
  harmonic  N_tar / E[min(1, N_tar/N)], over simple
  rejected  share of draws; budget is the mean of b
  dry       share of steps that ran out of groups and waited
  waited    mean score of the groups drawn
"""
import argparse
import bisect
import collections
import random
import statistics

MAX_BUDGET = 0.9


class Window:
    """The last `capacity` scores, in order of arrival and sorted."""

    def __init__(self, capacity):
        self.capacity, self.arrival, self.sorted = capacity, collections.deque(), []

    def add(self, score):
        self.arrival.append(score)
        bisect.insort(self.sorted, score)
        if len(self.arrival) > self.capacity:
            del self.sorted[bisect.bisect_left(self.sorted, self.arrival.popleft())]

    def quantile(self, p):
        h = (len(self.sorted) - 1) * p
        low = int(h)
        high = min(low + 1, len(self.sorted) - 1)
        return self.sorted[low] + (self.sorted[high] - self.sorted[low]) * (h - low)

    def tie_probability(self, cutoff, budget):
        first = bisect.bisect_left(self.sorted, cutoff)
        last = bisect.bisect_right(self.sorted, cutoff)
        if first == last:
            return 0.0
        owed = budget * len(self.sorted) - (len(self.sorted) - last)
        return min(1.0, max(0.0, owed / (last - first)))


class Queue:
    def __init__(self, batch, ratio, ties="fractional", arrivals="poisson", noise=0.0, beta=0.9,
                 target=None, window=None, min_observations=32, seed=1):
        self.batch, self.rate, self.ties, self.arrivals = batch, ratio * batch, ties, arrivals
        self.noise, self.beta, self.target = noise, beta, target or batch
        self.min_observations, self.random = min_observations, random.Random(seed)
        self.window = Window(window or max(512, 32 * batch))
        self.pool, self.step, self.now, self.smoothed = collections.deque(), 0, 0.0, 0.0
        self.next_arrival = self.gap()
        self.rows = []  # (occupancy, draws, budget, produced, ran dry, sum of scores)

    def gap(self):
        return self.random.expovariate(self.rate) if self.arrivals == "poisson" else 1 / self.rate

    def arrive(self):
        self.now = max(self.now, self.next_arrival)
        self.next_arrival += self.gap()
        noise = self.random.random() * self.noise if self.noise else 0.0
        self.pool.append((self.step, noise))

    def rejects(self, score, cutoff, tie_probability):
        if cutoff is None or score <= 0:
            return False
        if score == cutoff:
            return tie_probability > 0 and self.random.random() < tie_probability
        return score > cutoff

    def run_step(self):
        produced, waited = 0, False
        if not self.pool:
            self.arrive()
            produced, waited = 1, True
        occupancy = len(self.pool)
        rate = min(1.0, max(0.0, (occupancy - self.target) / occupancy))
        self.smoothed = self.beta * self.smoothed + (1 - self.beta) * rate
        budget, cutoff, tie_probability = min(self.smoothed, MAX_BUDGET), None, 0.0
        if len(self.window.sorted) >= self.min_observations and budget > 0:
            cutoff = self.window.quantile(1 - budget)
            if self.ties == "fractional":
                tie_probability = self.window.tie_probability(cutoff, budget)
        drawn, admitted = [], 0
        while admitted < self.batch:
            if not self.pool:
                self.arrive()
                produced, waited = produced + 1, True
            completed, noise = self.pool.popleft()
            drawn.append(self.step - completed + noise)
            admitted += not self.rejects(drawn[-1], cutoff, tie_probability)
        end = self.now + 1.0
        while self.next_arrival <= end:
            self.arrive()
            produced += 1
        self.now = end
        for score in drawn:  # frozen until the next step begins
            self.window.add(score)
        self.step += 1
        self.rows.append((occupancy, len(drawn), budget, produced, waited, sum(drawn)))

    def run(self, num_steps, skip=1000):
        for _ in range(skip + num_steps):
            self.run_step()
        return self.summary(self.rows[skip:])

    def summary(self, rows):
        occupancy = [row[0] for row in rows]
        mean = statistics.fmean(occupancy)
        produced = statistics.fmean(row[3] for row in rows)
        simple = self.target * produced / self.batch
        variance = statistics.pvariance([row[3] for row in rows])
        share = 1 - self.batch / produced
        prior = self.batch / self.target * (variance / produced**2 + share / (4 * self.batch))
        inverse = statistics.fmean(min(1.0, self.target / n) for n in occupancy)
        cv2 = statistics.pvariance(occupancy) / mean**2
        return {
            "produced": produced / self.batch, "simple": simple, "N": mean,
            "N/simple": mean / simple,
            "formula": 1 + self.beta * cv2,
            "prior": 1 + self.beta * prior,
            "harmonic": self.target / inverse / simple,
            "rejected": 1 - self.batch / statistics.fmean(row[1] for row in rows),
            "budget": statistics.fmean(row[2] for row in rows),
            "dry": statistics.fmean(row[4] for row in rows),
            "waited": sum(row[5] for row in rows) / sum(row[1] for row in rows),
        }


def show(title, cases, args):
    print(f"\n{title}")
    header = None
    for label, keywords in cases:
        result = Queue(seed=args.seed, **keywords).run(args.steps)
        if header is None:
            header = list(result)
            print(f"{'':34s}" + "".join(f"{name:>10s}" for name in header))
        print(f"{label:34s}" + "".join(f"{result[name]:10.3f}" for name in header), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Steady occupancy against a queue.")
    parser.add_argument("--steps", type=int, default=4000, help="steps measured, after 1000")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    batches, ratios = (4, 12, 32, 96), (1.5, 3.0)
    for arrivals in ("even", "poisson"):
        show(f"fractional ties, {arrivals} arrivals",
             [(f"batch {c}, arrivals {r} C", dict(batch=c, ratio=r, arrivals=arrivals))
              for r in ratios for c in batches], args)
    show("strict rule, scores with noise in [0, 0.5)",
         [(f"batch {c}, arrivals {r} C", dict(batch=c, ratio=r, ties="strict", noise=0.5))
          for r in ratios for c in batches], args)
    show("strict rule, integer scores",
         [(f"batch {c}, arrivals {r} C", dict(batch=c, ratio=r, ties="strict"))
          for r in ratios for c in batches], args)
    show("a late start of the filter, batch 32, arrivals 1.5 C",
         [(f"{name}, {n // 32} steps unfiltered",
           dict(batch=32, ratio=1.5, min_observations=n, **more))
          for name, more in (("strict", {"ties": "strict"}), ("fractional", {}))
          for n in (32, 320, 960)], args)
    show("moving average, batch 12, arrivals 3 C",
         [(f"beta {beta}", dict(batch=12, ratio=3, beta=beta)) for beta in (0, 0.5, 0.9, 0.99)],
         args)
    show("target, batch 12, arrivals 3 C",
         [(f"N_tar {m} C", dict(batch=12, ratio=3, target=int(m * 12)))
          for m in (0.5, 1, 1.5, 2, 4)], args)
    show("window, batch 32, arrivals 3 C",
         [(f"window of {m} steps' draws", dict(batch=32, ratio=3, window=int(m * 96)))
          for m in (0.5, 1, 2, 5, 10, 30)], args)


if __name__ == "__main__":
    main()
