"""pace: admission by effective staleness, for asynchronous reinforcement learning.

The controller and the simulator of pace, without its trainer:

- `AdmissionSession`: admission for a trainer that keeps its own supply, queue and workers;
- `Coordinator`: the whole controller, events in and commands out;
- `simulate`, `sweep`: runs under virtual time, with policies of your own if you like;
- `replay`, `Run`, `report`: what runs recorded.

A freshest-first policy in the simulator:

>>> import pace
>>> class FreshestFirst:
...     def begin_step(self, step, occupancy, batch, served):
...         self.step = step
...     def score(self, group):
...         return group.lag(self.step)
...     def judge(self, group):
...         return pace.Decision(True, self.score(group), "unfiltered")
>>> settings = pace.Settings("math-4b", "run.num_steps=6", method="miles-24")
>>> own = pace.simulate(settings, admission=FreshestFirst())
>>> own.rows == pace.simulate(settings).rows
True

Errors are `pace.Error` and its kinds, with one line each. docs/python.md is the guide.
"""

from ._core import (
    AdmissionPolicy,
    AdmissionSession,
    DataLoss,
    Decision,
    Error,
    Group,
    InvalidArgument,
    NotFound,
    Settings,
    StepPlan,
    SupplyPolicy,
    SupplyView,
    Unavailable,
    __version__,
    methods,
)
from .control import Coordinator
from .runs import Run, replay, replay_lines, report
from .sim import Simulation, Sweep, simulate, sweep

__all__ = [
    "AdmissionPolicy", "AdmissionSession", "Coordinator", "DataLoss", "Decision", "Error", "Group",
    "InvalidArgument", "NotFound", "Run", "Settings", "Simulation", "StepPlan", "SupplyPolicy",
    "SupplyView", "Sweep", "Unavailable", "__version__", "methods", "replay", "replay_lines",
    "report", "simulate", "sweep",
]
