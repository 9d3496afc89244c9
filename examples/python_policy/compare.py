"""Policies in Python, compared with built-in ones in the simulator.

    pip install . && python examples/python_policy/compare.py

"Half": admit a group whose lag is at most 2, or that waited no longer than it was generated.
"""

import pace
from freshest_first import FreshestFirst


class Half:
    def begin_step(self, step, occupancy, batch, served):
        self.step = step

    def score(self, group):
        return group.lag(self.step)

    def judge(self, group):
        return group.lag(self.step) <= 2 or group.waiting(self.step) <= group.generation


def main():
    settings = pace.Settings("math-4b", "run.num_steps=60")
    runs = {method: pace.simulate(settings.with_method(method))
            for method in ("async", "stale-2", "pace")}
    runs["freshest (Python)"] = pace.simulate(settings.with_method("miles-24"),
                                              admission=FreshestFirst())
    runs["half (Python)"] = pace.simulate(settings.with_method("stale-2"), admission=Half())
    print(f"{'policy':<18} {'s/step':>7} {'waiting':>8} {'rejected':>9}")
    for name, run in runs.items():
        totals = run.totals
        print(f"{name:<18} {totals['mean_step']:7.1f} {totals['mean_waiting']:8.2f} "
              f"{100 * totals['rejected_share']:8.1f}%")


if __name__ == "__main__":
    main()
