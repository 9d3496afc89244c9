"""Freshest first: every group is admitted, the one with the least lag is drawn first (`miles-K`).

    pace train tiny --driver lab pool.draw_order=lowest_score pool.max_groups=24 \\
        admission.policy=python:examples/python_policy/freshest_first.py:FreshestFirst
"""

import pace


class FreshestFirst:
    def begin_step(self, step, occupancy, batch, served):
        self.step = step

    def score(self, group):
        return group.lag(self.step)

    def judge(self, group):
        return pace.Decision(True, self.score(group), "unfiltered")
